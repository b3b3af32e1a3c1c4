package main

import (
	"fmt"
	"net/url"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/cmd/peer/internal/replay"
	"github.com/summarycache/summarycache/sim/workload"
)

type replayCommand struct {
	Trace  string   `arg:"" name:"trace" help:"Request trace, plain or gzip: lines of SECONDS CLIENT KEY SIZE, or an access log, Squid's or in Common Log Format."`
	To     []string `name:"to" sep:"," placeholder:"ADDR,..." type:"address" example:"3128" help:"Addresses of peers for requests, HOST:PORT; repeat it or separate them by commas. Default: the peer at --admin and every live peer that it knows."`
	Base   *url.URL `name:"base" placeholder:"URL" type:"origin" exact:"yes" help:"Origin of the trace's keys, if the peers are forward proxies. Default: the peers are reverse proxies."`
	Rate   float64  `name:"rate" placeholder:"RATE" default:"100" type:"number" max:"1e6" help:"Requests a second in all; 0 is as fast as answers come. Default: ${default}."`
	Speed  float64  `name:"speed" placeholder:"FACTOR" default:"0" type:"number" max:"1e9" help:"Keep the trace's own times, this many times as fast, instead of --rate. Default: 0, use --rate."`
	Limit  int      `name:"requests" placeholder:"COUNT" default:"0" type:"count" max:"2147483647" help:"Send only the first ones. Default: 0, all."`
	Seed   uint64   `name:"seed" placeholder:"NUMBER" default:"1" type:"count" help:"Seed for assigning requests of unknown clients to peers. Default: ${default}."`
	Check  bool     `name:"check" help:"Verify every body by its URL; only for the origin of peer demo."`
	target `embed:""`
}

func (c *replayCommand) Help() string {
	return `Sends a request trace to a running cluster. The requests are real, and misses reach the origin. Clients are assigned to the peers by hash, requests of unknown clients at random. The result shows, by Cache-Status, where each answer came from.`
}

func (c *replayCommand) Run(e *environment) (err error) {
	o := replay.Options{Base: c.Base, Rate: c.Rate, Speed: c.Speed, Seed: c.Seed, Check: c.Check}
	if o.Trace, err = workload.ReadFile(c.Trace, workload.Options{Targets: true}); err != nil {
		return err
	}
	o.Trace = o.Trace.Head(c.Limit)
	if o.Peers, err = c.peers(e); err != nil {
		return err
	}
	if o.Check {
		o.Trace.FillSizes()
	}
	if all := len(o.Trace.Requests); isTerminal(e.stderr) {
		o.Progress = func(c replay.Counts) {
			if c.Requests%1000 == 0 || c.Requests == int64(all) {
				fmt.Fprintf(e.stderr, "\r%d of %d requests", c.Requests, all)
			}
		}
	}
	result, err := replay.Run(e.ctx, o)
	if o.Progress != nil {
		fmt.Fprintln(e.stderr)
	}
	if err != nil {
		fmt.Fprintln(e.stderr, "peer: interrupted")
	}
	err = show(e, c.JSON, result, replay.Text)
	if err == nil && result.Total.Failed > 0 {
		err = fmt.Errorf("%d requests failed, the first: %s", result.Total.Failed, result.FirstError)
	}
	return err
}

// peers returns the addresses to send requests to.
func (c *replayCommand) peers(e *environment) ([]string, error) {
	if len(c.To) > 0 {
		return c.To, nil
	}
	s, err := admin.Client(c.Admin).Status(e.ctx)
	if err != nil {
		return nil, fmt.Errorf("no --to, and %w", err)
	}
	switch {
	case s.Origin == "" && c.Base == nil:
		return nil, misuse{fmt.Errorf("%s is a forward proxy: --base must name the origin of the trace", s.Name)}
	case s.Origin != "" && c.Base != nil:
		return nil, misuse{fmt.Errorf("%s is a reverse proxy for %s: leave --base out", s.Name, s.Origin)}
	}
	peers := []string{s.Addresses.Service}
	for _, m := range s.Members {
		if m.Here() && m.Service != "" && !m.Squid {
			peers = append(peers, m.Service)
		}
	}
	return peers, nil
}
