package main

import "github.com/summarycache/summarycache/cmd/peer/internal/admin"

// target is which running peer a command asks.
type target struct {
	Admin string `name:"admin" env:"PEER_ADMIN" placeholder:"ADDR" default:"127.0.0.1:3129" help:"The peer's admin address. Default: ${default}."`
	JSON  bool   `name:"json" help:"Print JSON."`
}

func (t *target) fetch(e *environment) (admin.Status, error) {
	return admin.Client(t.Admin).Status(e.ctx)
}

type statusCommand struct {
	Cluster bool `name:"cluster" help:"Show all peers of its cluster, which it asks, and the sums of their figures."`
	target  `embed:""`
}

func (c *statusCommand) Help() string {
	return `With --cluster: of each peer the requests of clients since it started, how many of them were hits, those from siblings included and beside, how many requests it sent to origins, and how many bytes of bodies went to clients that no origin sent; below, whoever is dead, does not answer within a second, is alone, or lacks digests of others. Peers without a secret (--secret-file) answer nobody.`
}

func (c *statusCommand) Run(e *environment) error {
	if c.Cluster {
		all, err := admin.Client(c.Admin).Cluster(e.ctx)
		switch {
		case err != nil:
			return err
		case c.JSON:
			return printJSON(e, all)
		}
		return admin.WriteCluster(e.stdout, all)
	}
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
