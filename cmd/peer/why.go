package main

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
)

type whyCommand struct {
	URL     string   `arg:"" name:"url" help:"Absolute URL or, for a reverse proxy, a path."`
	Headers []string `name:"header" short:"H" sep:"none" placeholder:"'NAME: VALUE'" help:"A field of the request; repeat it."`
	Method  string   `name:"method" placeholder:"METHOD" default:"GET" help:"Method of the request. Default: ${default}."`
	target  `embed:""`
}

func (c *whyCommand) Help() string {
	return `Asks a running peer what it would do with a request if it came now: what it holds for the URL, what each other peer's digest says of it, with which odds to be wrong, and who would be asked; and what each other peer says that it stores for the URL, in which version, and how old it is, for which each has a second. Nothing is fetched or changed. What --header says of cookies and credentials is told no other peer.`
}

func (c *whyCommand) Run(e *environment) error {
	in := admin.WhyRequest{Method: c.Method, URL: c.URL, Header: http.Header{}}
	for _, line := range c.Headers {
		name, value, ok := strings.Cut(line, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return misuse{fmt.Errorf("--header %q is no field, such as 'Accept-Encoding: gzip'", line)}
		}
		in.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	answer, err := admin.Client(c.Admin).Why(e.ctx, in)
	if err != nil {
		return err
	}
	return show(e, c.JSON, answer, admin.WriteExplanation)
}
