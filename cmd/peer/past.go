package main

import (
	"slices"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
)

// selection says which misses a command is about.
type selection struct {
	URL     string `arg:"" optional:"" name:"text" help:"Only URLs with this in them."`
	Site    string `name:"site"`
	Reason  string `name:"reason"`
	Outcome string `name:"outcome"`
	Here    bool   `name:"here"`
	Queries bool   `name:"queries"`
	target  `embed:""`
}

func (s *selection) request() admin.PastRequest {
	return admin.PastRequest{URL: s.URL, Site: s.Site, Reason: s.Reason, Outcome: s.Outcome, Queries: s.Queries, Everywhere: !s.Here}
}

type logCommand struct {
	Last      int  `name:"last" default:"20" type:"count" min:"1" max:"100000000"`
	Follow    bool `name:"follow" short:"f"`
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
	By        string `name:"by" default:"url" enum:"url,site,reason,outcome,source,peer"`
	Most      int    `name:"most" default:"20" type:"count" min:"1" max:"100000000"`
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
