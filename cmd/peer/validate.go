package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/summarycache/summarycache/cmd/peer/internal/config"
	"github.com/summarycache/summarycache/cmd/peer/internal/table"
)

type validateCommand struct {
	config.Settings `embed:""`
	JSON            bool `name:"json" help:"Print JSON."`
}

func (c *validateCommand) Help() string {
	return "Takes the flags, variables and file that run takes, and starts nothing."
}

func (c *validateCommand) Run(e *environment, ctx *kong.Context) error {
	_, settings, err := config.Load(ctx, &c.Settings)
	if err != nil {
		return misuse{err}
	}
	warnStrays(e)
	if c.JSON {
		return printJSON(e, settings)
	}
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
	if err := t.Write(e.stdout, ""); err != nil {
		return err
	}
	_, err = fmt.Fprintln(e.stdout, "\nThe configuration is good.")
	return err
}

func warnStrays(e *environment) {
	for _, w := range config.Strays(os.Environ()) {
		fmt.Fprintln(e.stderr, "peer: warning:", w)
	}
}
