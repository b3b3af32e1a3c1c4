// Command peer is an HTTP cache that shares what it holds with its neighbours.
//
// A peer run as a forward or reverse proxy keeps objects on disk and tells the
// other peers of its cluster, by gossip and in few bytes, what it holds; a miss
// is then answered by the neighbour that has the object instead of the origin.
// "peer demo" shows a whole cluster at work on one machine.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	os.Exit(complain(os.Stderr, err))
}
