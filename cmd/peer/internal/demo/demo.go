package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/cmd/peer/internal/replay"
	"github.com/summarycache/summarycache/sim/workload"
)

// Options say what to run.
type Options struct {
	Peers          int // at least 1
	Trace          *workload.Trace
	Rate           float64       // requests a second in all; 0 = as fast as answers come
	Seed           uint64        // for the peers that requests of unknown clients go to
	FalsePositives float64       // of the peers' digests; 0 = 0.001
	Forward        bool          // the peers are forward proxies; else reverse proxies
	Publish        time.Duration // as the setting of that name

	TempDir  string       // where the files go meanwhile; "" = the system's
	Version  string       // of the program
	Progress io.Writer    // gets the progress; nil = none
	Live     bool         // Progress is a terminal: rewrite one line
	Logger   *slog.Logger // of the peers; nil = discard
	// Serve, if not nil, is called with the running cluster after the workload;
	// the cluster stops when it returns.
	Serve func(context.Context, *Result, Addresses)
}

// Addresses are where a running demo can be reached.
type Addresses struct {
	Origin  string // URL
	Peers   []admin.Addresses
	Example Example
}

// Example is an object that peer number Holder has and number Other does not. A
// request for it to Other shows cooperation. Target is "" if there is none.
type Example struct {
	Target        string
	Holder, Other int
}

// Run starts a cluster, sends it the trace, and stops it. It always removes its files.
// Errors of requests are counted in the result; Run returns errors of the demo itself.
// If ctx ends early, the result covers the requests that were answered until then, and
// is nil without any.
func Run(ctx context.Context, o Options) (result *Result, err error) {
	if o.FalsePositives == 0 {
		o.FalsePositives = 0.001
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	began := time.Now()
	fmt.Fprintf(o.Progress, "Starting an origin and %d peers on loopback ...", o.Peers)
	c, err := startCluster(ctx, o, o.Logger)
	if err != nil {
		fmt.Fprintln(o.Progress)
		return nil, interrupted(ctx, err)
	}
	defer func() { err = errors.Join(err, c.close()) }()
	fmt.Fprintf(o.Progress, " they know each other after %.1f s\n", time.Since(began).Seconds())

	send := replay.Options{Trace: o.Trace, Peers: c.listens(), Rate: o.Rate, Seed: o.Seed, Check: true, Progress: func(all replay.Counts) { c.seen.Store(&all) }}
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
	result = c.result(o, seen)
	if o.Serve != nil {
		o.Serve(ctx, result, c.addresses())
		fmt.Fprintln(o.Progress, "Stopping and removing the files ...")
	}
	return result, nil
}

// interrupted replaces an error that the end of ctx caused.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return err
}

// listens returns the addresses at which the peers take requests.
func (c *cluster) listens() (list []string) {
	for _, n := range c.nodes {
		list = append(list, n.Addresses().Listen)
	}
	return list
}

func (c *cluster) addresses() Addresses {
	a := Addresses{Origin: c.base}
	for _, n := range c.nodes {
		a.Peers = append(a.Peers, n.Addresses())
	}
	for target := range c.origin.Sizes {
		holder, other := -1, -1
		for i, n := range c.nodes {
			if n.Holds(c.identity(target)) {
				holder = i
			} else {
				other = i
			}
		}
		if holder >= 0 && other >= 0 {
			a.Example = Example{target, holder, other}
			break
		}
	}
	return a
}
