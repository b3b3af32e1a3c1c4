package main

import (
	"io"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
)

// target is which running peer a command asks.
type target struct {
	Admin string `name:"admin" env:"PEER_ADMIN" placeholder:"ADDR" default:"127.0.0.1:3129" help:"The peer's admin address. Default: ${default}."`
	JSON  bool   `name:"json" help:"Print JSON."`
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
		if err != nil {
			return err
		}
		return show(e, c.JSON, all, admin.WriteCluster)
	}
	s, err := admin.Client(c.Admin).Status(e.ctx)
	if err != nil {
		return err
	}
	return show(e, c.JSON, s, admin.WriteStatus)
}

type membersCommand struct {
	target `embed:""`
}

func (c *membersCommand) Run(e *environment) error {
	s, err := admin.Client(c.Admin).Status(e.ctx)
	if err != nil {
		return err
	}
	return show(e, c.JSON, s.Members, func(w io.Writer, _ []admin.Member) error { return admin.WriteMembers(w, s) })
}
