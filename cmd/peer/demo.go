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
	Peers    int           `name:"peers" default:"3" type:"count" min:"1" max:"32"`
	Requests *int          `name:"requests" type:"count" max:"100000000"`
	Objects  int           `name:"objects" default:"1000" type:"count" min:"1" max:"1000000"`
	Skew     float64       `name:"skew" default:"0.9" type:"number" max:"5"`
	Seed     uint64        `name:"seed" default:"1" type:"count"`
	Trace    string        `name:"trace"`
	Rate     float64       `name:"rate" default:"300" type:"number" max:"1e6"`
	Publish  time.Duration `name:"publish" default:"0s" type:"time" max:"1h"`
	Forward  bool          `name:"forward"`
	JSON     bool          `name:"json"`
	Verbose  bool          `name:"verbose" short:"v"`
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
