// Command peer is an HTTP cache that shares its contents with the other caches of a cluster.
//
// A peer is a forward or reverse proxy that keeps objects on disk. It advertises them to the
// other peers by gossip, in few bytes. A miss is then answered by a peer that has the object
// instead of the origin. "peer demo" runs a whole cluster on one machine.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/summarycache/summarycache/cmd/peer/internal/sd"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "run" { // what ends soon is not worth a second start
		sd.Slacken()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process immediately
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	os.Exit(complain(newLossy(os.Stderr), err))
}
