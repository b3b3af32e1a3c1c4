package main

import (
	"errors"
	"fmt"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
)

type purgeCommand struct {
	URL        string   `arg:"" optional:"" name:"url" help:"Absolute URL, as clients use it. A path stands for the URL at --origin."`
	Prefix     bool     `name:"prefix"`
	Pattern    bool     `name:"pattern"`
	Tags       []string `name:"tag"`
	Soft       bool     `name:"soft"`
	Everywhere bool     `name:"everywhere"`
	operator   `embed:""`
}

func (c *purgeCommand) Help() string {
	return `Removes every stored response of a URL, all variants, or by prefix, pattern or tag, from a running peer. A fetch under way is not stored, and no sibling supplies an older copy. The exit code is 1 if a peer has not confirmed within a second; it purges when it receives the message.`
}

func (c *purgeCommand) Run(e *environment) error {
	if (c.URL == "") == (len(c.Tags) == 0) {
		return misuse{errors.New("a purge needs a URL or a --tag, and not both")}
	}
	if c.Prefix && c.Pattern {
		return misuse{errors.New("a purge is by --prefix or by --pattern, not both")}
	}
	token, err := c.token()
	if err != nil {
		return err
	}
	report, err := admin.Client(c.Admin).Purge(e.ctx, admin.PurgeRequest{URL: c.URL, Prefix: c.Prefix, Pattern: c.Pattern, Tags: c.Tags, Soft: c.Soft, Everywhere: c.Everywhere}, token)
	if err != nil {
		return err
	}
	err = show(e, c.JSON, report, admin.PurgeText)
	if n := report.Failed(); err == nil && n > 0 {
		err = fmt.Errorf("%d of %d peers did not purge", n, len(report.Peers))
	}
	return err
}
