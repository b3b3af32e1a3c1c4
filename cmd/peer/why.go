package main

import (
	"fmt"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
)

type whyCommand struct {
	URL     string   `arg:"" name:"url" help:"Absolute URL, as clients use it. A path stands for the URL at --origin."`
	Headers []string `name:"header" short:"H" sep:"none"`
	Method  string   `name:"method" default:"GET"`
	target  `embed:""`
}

func (c *whyCommand) Help() string {
	return `Shows what a running peer would do with a request now: what it stores for the URL, what each other peer's digest says and with which probability it is wrong, and to which peers it would send lookups. It also asks each other peer, for up to a second, which version it stores for the URL and how old that is. Nothing is fetched or changed. Cookies and credentials of --header are not sent to other peers.`
}

func (c *whyCommand) Run(e *environment) error {
	if _, err := admin.HeaderOf(c.Headers); err != nil {
		return misuse{fmt.Errorf("--header %w", err)}
	}
	answer, err := admin.Client(c.Admin).Why(e.ctx, c.Method, c.URL, c.Headers)
	if err != nil {
		return err
	}
	return show(e, c.JSON, answer, admin.ExplanationText)
}
