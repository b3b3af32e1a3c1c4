package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/replay"
	"github.com/summarycache/summarycache/sim/workload"
)

// Options are the options of [Run].
type Options struct {
	Peers   int // at least 1
	Trace   *workload.Trace
	Read    string        // of what file the trace is
	Rate    float64       // requests a second in all; 0 = as fast as answers come
	Seed    uint64        // for assigning requests of unknown clients to peers
	Forward bool          // run forward proxies instead of reverse proxies
	Publish time.Duration // the setting of that name

	TempDir  string       // for temporary files; "" = the system's
	Version  string       // of the program
	Progress io.Writer    // for progress messages
	Live     bool         // Progress is a terminal: rewrite one line
	Logger   *slog.Logger // of the peers
}

// Run starts a cluster, sends it the trace, stops it and removes its files. Failed requests are counted
// in the result; the error is for the demo itself. If ctx ends early, the result is for the requests
// that were answered by then, and nil if there were none.
func Run(ctx context.Context, o Options) (result *Result, err error) {
	began := time.Now()
	fmt.Fprintf(o.Progress, "Starting an origin and %d peers on loopback ...", o.Peers)
	c, err := startCluster(ctx, o)
	if err != nil {
		fmt.Fprintln(o.Progress)
		return nil, interrupted(ctx, err)
	}
	defer func() { err = errors.Join(err, c.close()) }()
	fmt.Fprintf(o.Progress, " they know each other after %.1f s\n", time.Since(began).Seconds())

	var peers []string
	for _, n := range c.nodes {
		peers = append(peers, n.Addresses().Listen)
	}
	send := replay.Options{Trace: o.Trace, Peers: peers, Rate: o.Rate, Seed: o.Seed, Progress: func(all replay.Counts) { c.seen.Store(&all) }}
	if o.Forward {
		send.Base, _ = url.Parse(c.base)
	}
	stop := report(o, c)
	seen, err := replay.Run(ctx, send)
	stop()
	if err != nil {
		if done := int(seen.Total.Requests); done > 0 {
			o.Trace = o.Trace.Head(done)
			result = c.result(o, seen)
		}
		return result, interrupted(ctx, err)
	}
	return c.result(o, seen), nil
}

// interrupted returns err, or another error if the end of ctx caused it.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return err
}
