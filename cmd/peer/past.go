package main

import (
	"slices"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
)

// selection says which misses a command is about.
type selection struct {
	URL     string `arg:"" optional:"" name:"text" help:"Only URLs with this in them."`
	Site    string `name:"site" placeholder:"HOST" help:"Only URLs of this host."`
	Reason  string `name:"reason" placeholder:"TOKEN" help:"Only those with this reason: after fwd or detail in Cache-Status, such as uri-miss, stale, private or no-lifetime."`
	Outcome string `name:"outcome" placeholder:"TOKEN" help:"Only those with this outcome, such as origin-fetch or gateway-error."`
	Here    bool   `name:"here" help:"Of this peer alone, not of the whole cluster."`
	Queries bool   `name:"queries" help:"Show URLs with their queries."`
	target  `embed:""`
}

func (s *selection) request() admin.PastRequest {
	return admin.PastRequest{URL: s.URL, Site: s.Site, Reason: s.Reason, Outcome: s.Outcome, Queries: s.Queries, Everywhere: !s.Here}
}

type logCommand struct {
	Last      int  `name:"last" placeholder:"COUNT" default:"20" type:"count" min:"1" max:"100000000" help:"How many. Default: ${default}."`
	Follow    bool `name:"follow" short:"f" help:"Go on, as they come."`
	selection `embed:""`
}

func (c *logCommand) Help() string {
	return `Shows the last requests that were not answered from a peer's store, and why: each peer remembers 4,096. Hits are in the access log alone. "peer why URL" says what would happen now.`
}

func (c *logCommand) Run(e *environment) error {
	q := c.request()
	q.Last = c.Last
	all, err := admin.Client(c.Admin).Misses(e.ctx, q)
	if err != nil {
		return err
	}
	if err := show(e, c.JSON, all, admin.MissesText); err != nil || !c.Follow {
		return err
	}
	q.Last, q.Since = 0, time.Now()
	for { // until the command is interrupted
		if len(all.Misses) > 0 && all.Misses[0].At.After(q.Since) {
			q.Since = all.Misses[0].At
		}
		select {
		case <-e.ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
		if all, err = admin.Client(c.Admin).Misses(e.ctx, q); err != nil {
			return err
		}
		for _, m := range slices.Backward(all.Misses) {
			if err := show(e, c.JSON, m, admin.Miss.Line); err != nil {
				return err
			}
		}
	}
}

type topCommand struct {
	By        string `name:"by" placeholder:"WHAT" default:"url" enum:"url,site,reason,outcome,source,peer" help:"url, site, reason, outcome, source or peer. Default: ${default}."`
	Most      int    `name:"most" placeholder:"COUNT" default:"20" type:"count" min:"1" max:"100000000" help:"How many groups. Default: ${default}."`
	selection `embed:""`
}

func (c *topCommand) Help() string {
	return `Groups the requests that were not answered from a peer's store, of the last 4,096 of each peer, and shows the largest groups.`
}

func (c *topCommand) Run(e *environment) error {
	all, err := admin.Client(c.Admin).Misses(e.ctx, c.request())
	if err != nil {
		return err
	}
	return show(e, c.JSON, all, func(m admin.Misses) string { return admin.TopText(m, c.By, c.Most) })
}
