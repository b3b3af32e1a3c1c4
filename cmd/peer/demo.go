package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/demo"
	"github.com/summarycache/summarycache/sim/workload"
)

type demoCommand struct {
	Peers    int           `name:"peers" placeholder:"COUNT" default:"3" type:"count" min:"1" max:"32" help:"Peers to run, 1 to 32. Default: ${default}."`
	Requests *int          `name:"requests" placeholder:"COUNT" type:"count" max:"100000000" help:"Requests to send. Default: 3000, or all of the trace."`
	Objects  int           `name:"objects" placeholder:"COUNT" default:"1000" type:"count" min:"1" max:"1000000" help:"Objects that the workload chooses from. Default: ${default}."`
	Skew     float64       `name:"skew" placeholder:"EXPONENT" default:"0.9" type:"number" max:"5" help:"How skewed their popularity is: the exponent of a Zipf law. Default: ${default}."`
	Seed     uint64        `name:"seed" placeholder:"NUMBER" default:"1" type:"count" help:"Equal seeds give equal workloads. Default: ${default}."`
	Trace    string        `name:"trace" placeholder:"FILE" help:"Replay a request trace or an access log instead: ${formats}; plain, gzip or Zstandard. What it is and what was left out is said. Its order is kept, its times are not. Clients are assigned to the peers by hash; requests of unknown clients at random."`
	Rate     float64       `name:"rate" placeholder:"RATE" default:"300" type:"number" max:"1e6" help:"Requests a second in all; 0 is as fast as answers come. The cost of the digests depends on it. Default: ${default}."`
	Publish  time.Duration `name:"publish" placeholder:"TIME" default:"0s" type:"time" max:"1h" help:"How long a change may wait, at most, until the other peers hear of it. Default: 0s, at most 5 s, and as long as waiting saves more than it costs."`
	Forward  bool          `name:"forward" help:"Run the peers as forward proxies, not as reverse proxies of the origin."`
	JSON     bool          `name:"json" help:"Print JSON."`
	Verbose  bool          `name:"verbose" short:"v" help:"Show what the peers log."`
}

func (c *demoCommand) Help() string {
	return `Everything is real: sockets on loopback, gossip, HTTP through each peer, objects on disk, each body checked by its URL. Ports are free ones, files are temporary, and nothing is left behind.`
}

func (c *demoCommand) Run(e *environment) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	if o.Read != "" {
		fmt.Fprintln(e.stderr, o.Read)
	}
	o.Version, o.Progress, o.Live, o.Logger = thisBuild().Version, e.stderr, isTerminal(e.stderr) && !c.Verbose, slog.New(slog.DiscardHandler)
	if c.Verbose {
		o.Logger = slog.New(slog.NewTextHandler(e.stderr, nil))
	}
	result, err := demo.Run(e.ctx, o)
	if result != nil { // an interrupted run has one as well
		err = errors.Join(err, show(e, c.JSON, result, demo.Text))
	}
	if err != nil {
		return err
	}
	if result.Errors > 0 {
		return fmt.Errorf("%d requests failed, the first: %s", result.Errors, result.FirstError)
	}
	return nil
}

// options makes the options of the demo, with its workload.
func (c *demoCommand) options() (o demo.Options, err error) {
	o = demo.Options{Peers: c.Peers, Seed: c.Seed, Rate: c.Rate, Publish: c.Publish, Forward: c.Forward}
	if c.Trace == "" {
		requests := 3000
		if c.Requests != nil {
			requests = *c.Requests
		}
		o.Trace = workload.Synthetic(workload.Model{Requests: requests, Objects: c.Objects, Exponent: c.Skew, Seed: c.Seed})
		return o, nil
	}
	if o.Trace, err = workload.ReadFile(c.Trace, workload.Options{Targets: true}); err != nil {
		return o, fmt.Errorf("--trace: %w", err)
	}
	o.Read = o.Trace.Summary()
	if c.Requests != nil {
		o.Trace = o.Trace.Head(*c.Requests)
	}
	o.Trace.FillSizes()
	return o, nil
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}
