package main

import "github.com/summarycache/summarycache/cmd/peer/internal/admin"

// target is which running peer a command asks.
type target struct {
	Admin string `name:"admin" env:"PEER_ADMIN" placeholder:"ADDR" default:"127.0.0.1:3129" help:"The peer's admin address. Default: ${default}."`
	JSON  bool   `name:"json" help:"Print JSON."`
}

func (t *target) fetch(e *environment) (admin.Status, error) { return admin.Fetch(e.ctx, t.Admin) }

type statusCommand struct {
	target `embed:""`
}

func (c *statusCommand) Run(e *environment) error {
	s, err := c.fetch(e)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(e, s)
	}
	return admin.WriteStatus(e.stdout, s)
}

type membersCommand struct {
	target `embed:""`
}

func (c *membersCommand) Run(e *environment) error {
	s, err := c.fetch(e)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(e, s.Members)
	}
	return admin.WriteMembers(e.stdout, s)
}
