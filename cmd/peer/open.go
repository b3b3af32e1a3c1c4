package main

import (
	"net"
	"path/filepath"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
)

type openCommand struct {
	operator `embed:""`
}

func (c *openCommand) Help() string {
	return "The link opens the status page of a running peer with a token, by which the page's buttons work " +
		"until the peer's process ends. Whoever has the link may purge and reload. The token is behind #, which " +
		"browsers send to no server. Through a tunnel (ssh -L 3129:127.0.0.1:3129 HOST) the link works as it is."
}

func (c *openCommand) Run(e *environment) error {
	token, err := c.token()
	if err != nil {
		return err
	}
	session, err := admin.Client(c.Admin).Session(e.ctx, token)
	if err != nil {
		return err
	}
	addr := c.Admin
	if filepath.IsAbs(addr) {
		s, err := admin.Client(addr).Status(e.ctx)
		if err != nil {
			return err
		}
		addr = s.Addresses.Admin
	}
	if host, port, _ := net.SplitHostPort(addr); host == "" || net.ParseIP(host).IsUnspecified() {
		addr = net.JoinHostPort("127.0.0.1", port)
	}
	link := "http://" + addr + "/#token=" + session.Token
	return show(e, c.JSON, map[string]string{"url": link}, func(map[string]string) string { return link + "\n" })
}
