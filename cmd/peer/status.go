package main

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/cmd/peer/internal/config"
)

// target is the running peer that a command talks to.
type target struct {
	Admin string `name:"admin" env:"PEER_ADMIN" default:"127.0.0.1:3129"`
	JSON  bool   `name:"json"`
}

// operator is the running peer that a command changes something at.
type operator struct {
	TokenFile string `name:"token-file"`
	target    `embed:""`
}

func (o *operator) token() (string, error) { return config.ReadToken(o.TokenFile) }

// Validate refuses a URL, or an address without a port, which HTTP would take for port 80.
func (t *target) Validate() error {
	_, _, err := net.SplitHostPort(t.Admin)
	if !filepath.IsAbs(t.Admin) && (err != nil || strings.Contains(t.Admin, "/")) {
		return fmt.Errorf("--admin %q is not HOST:PORT, such as 127.0.0.1:3129, or the path of a socket", t.Admin)
	}
	return nil
}

type statusCommand struct {
	Cluster bool `name:"cluster"`
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

func (c *membersCommand) Help() string {
	return `Each peer says itself which version it runs, and since when: a peer that is dead or does not answer within a second has none.`
}

func (c *membersCommand) Run(e *environment) error {
	if _, err := admin.Client(c.Admin).Cluster(e.ctx); err != nil { // has the peer ask the others what they run
		return err
	}
	s, err := admin.Client(c.Admin).Status(e.ctx)
	if err != nil {
		return err
	}
	return show(e, c.JSON, s.Members, func([]admin.Member) string { return admin.MembersText(s) })
}
