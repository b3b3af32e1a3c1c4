package main

import (
	"fmt"
	"net"
	"strings"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
)

// target is the running peer that a command talks to.
type target struct {
	Admin string `name:"admin" env:"PEER_ADMIN" placeholder:"ADDR" default:"127.0.0.1:3129" help:"The peer's admin address. Default: ${default}."`
	JSON  bool   `name:"json" help:"Print JSON."`
}

// Validate refuses a URL, or an address without a port, which HTTP would take for port 80.
func (t *target) Validate() error {
	if _, _, err := net.SplitHostPort(t.Admin); err != nil || strings.Contains(t.Admin, "/") {
		return fmt.Errorf("--admin %q is not HOST:PORT, such as 127.0.0.1:3129", t.Admin)
	}
	return nil
}

type statusCommand struct {
	Cluster bool `name:"cluster" help:"Show the statistics of all peers in its cluster, and their sums."`
	target  `embed:""`
}

func (c *statusCommand) Help() string {
	return `With --cluster, the peer asks all others for their statistics since they started: requests of clients, the share of hits, the share answered by siblings (a part of the hits), requests to origins, and body bytes to clients that did not come from an origin. Peers that are dead, do not answer within a second, are alone, or lack digests of others are listed below.`
}

func (c *statusCommand) Run(e *environment) error {
	if c.Cluster {
		all, err := admin.Client(c.Admin).Cluster(e.ctx)
		if err != nil {
			return err
		}
		return show(e, c.JSON, all, admin.ClusterText)
	}
	s, err := admin.Client(c.Admin).Status(e.ctx)
	if err != nil {
		return err
	}
	return show(e, c.JSON, s, admin.StatusText)
}

type membersCommand struct {
	target `embed:""`
}

func (c *membersCommand) Run(e *environment) error {
	s, err := admin.Client(c.Admin).Status(e.ctx)
	if err != nil {
		return err
	}
	return show(e, c.JSON, s.Members, func([]admin.Member) string { return admin.MembersText(s) })
}
