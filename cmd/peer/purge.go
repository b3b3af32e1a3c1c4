package main

import (
	"fmt"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/cmd/peer/internal/config"
)

type purgeCommand struct {
	URL        string `arg:"" name:"url" help:"Absolute URL or, for a reverse proxy, a path."`
	Prefix     bool   `name:"prefix" help:"Remove everything whose URL begins with it."`
	Everywhere bool   `name:"everywhere" help:"At every peer of the cluster, also those that are away now and come back."`
	TokenFile  string `name:"token-file" placeholder:"FILE" help:"The peer's --admin-token-file, if it has one."`
	target     `embed:""`
}

func (c *purgeCommand) Help() string {
	return `Removes every stored response of a URL, all variants, from a running peer. What is being fetched for it is not stored, and no sibling brings an older copy back. The exit code is 1 if a peer has not done so within half a second; it will when it hears of it.`
}

func (c *purgeCommand) Run(e *environment) error {
	token, err := config.ReadToken(c.TokenFile)
	if err != nil {
		return err
	}
	report, err := admin.Client(c.Admin).Purge(e.ctx, admin.PurgeOrder{URL: c.URL, Prefix: c.Prefix, Everywhere: c.Everywhere}, token)
	if err != nil {
		return err
	}
	if c.JSON {
		err = printJSON(e, report)
	} else {
		err = admin.WritePurge(e.stdout, report)
	}
	if n := report.Failed(); err == nil && n > 0 {
		err = fmt.Errorf("%d of %d peers did not purge", n, len(report.Peers))
	}
	return err
}
