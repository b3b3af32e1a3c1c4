package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/cmd/peer/internal/config"
	"github.com/summarycache/summarycache/cmd/peer/internal/node"
	"github.com/summarycache/summarycache/cmd/peer/internal/proxy"
	"github.com/summarycache/summarycache/cmd/peer/internal/table"
)

type validateCommand struct {
	config.Config `embed:""`
	JSON          bool     `name:"json" xor:"form"`
	Try           bool     `name:"try" xor:"form"`
	Explain       string   `name:"explain" xor:"form"`
	Headers       []string `name:"header" short:"H" sep:"none"`
	Method        string   `name:"method" default:"GET"`
}

func (c *validateCommand) Help() string {
	return "Accepts the flags, variables and file of run, and starts nothing. With --try, exit code 1 means that run " +
		"would fail, with the same errors."
}

func (c *validateCommand) Run(e *environment, ctx *kong.Context, flags *config.Flags) error {
	settings, err := flags.Load(ctx, &c.Config)
	if err != nil {
		return misuse{err}
	}
	if strays := config.Strays(os.Environ()); strays != nil {
		return misuse{errors.Join(strays...)}
	}
	if c.Explain != "" {
		return c.explain(e)
	}
	if err := show(e, c.JSON, settings, settingsText); err != nil {
		return err
	}
	if !c.Try {
		return nil
	}
	if err := node.Try(node.Options{Config: c.Config, Stdout: e.stdout}); err != nil {
		return err
	}
	_, err = fmt.Fprintln(e.stdout, "The ports, the store and the files are to be had.")
	return err
}

// explain says what the rules decide about a request.
func (c *validateCommand) explain(e *environment) error {
	header, err := admin.HeaderOf(c.Headers)
	if err != nil {
		return misuse{fmt.Errorf("--header %w", err)}
	}
	s := proxy.Settings{Origin: c.Origin, PreserveHost: c.PreserveHost == "on", Sites: c.Sites,
		TrustedProxies: c.TrustedProxies, Rules: c.Rules, PassFields: c.PassFields}
	url, decisions, err := s.Decisions(c.HTTPSListen != "", c.Method, c.Explain, header)
	if err != nil {
		return misuse{fmt.Errorf("--explain %w", err)}
	}
	t := table.New("RULE", "DECIDES")
	for _, d := range decisions {
		t.Row(d.Rule, d.What)
	}
	if len(decisions) == 0 {
		t.Row("none", "nothing: the origin and the client do")
	}
	_, err = fmt.Fprintf(e.stdout, "%s %s\n%s", c.Method, url, t.Text(""))
	return err
}

func settingsText(settings []config.Effective) string {
	t := table.New("SETTING", "VALUE", "FROM")
	for _, s := range settings {
		switch {
		case s.Value == "":
		case s.List:
			for i, line := range strings.Split(s.Value, "\n") {
				t.Row(fmt.Sprintf("%s %d", s.Name, i+1), line, s.Source)
			}
		default:
			t.Row(s.Name, s.Value, s.Source)
		}
	}
	return t.Text("") + "\nThe configuration is good.\n"
}
