package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/alecthomas/kong"

	"github.com/summarycache/summarycache/cmd/peer/internal/config"
	"github.com/summarycache/summarycache/cmd/peer/internal/node"
)

type runCommand struct {
	config.Settings `embed:""`
}

func (c *runCommand) Help() string {
	return `Examples:
  A forward proxy alone, with everything on this machine:
    peer run
  A reverse proxy in a cluster of three:
    peer run --name cache-1 --listen :80 --gossip :7946 --origin http://10.0.0.9:8080 \
      --join cache-2:7946,cache-3:7946 --secret-file /etc/peer/secret --store /var/cache/peer --store-size 10GiB

A flag is stronger than its PEER_* variable, which is stronger than the file of --config.`
}

func (c *runCommand) Run(e *environment, ctx *kong.Context) error {
	cfg, _, err := config.Load(ctx, &c.Settings)
	if err != nil {
		return misuse{err}
	}
	warnStrays(e)
	log := newLogger(e.stderr, cfg)
	n, err := node.Start(e.ctx, node.Options{Config: cfg, Logger: log, Version: thisBuild().Version})
	switch {
	case err != nil && e.ctx.Err() != nil: // told to stop while starting
		return nil
	case err != nil:
		return err
	}
	a := n.Addresses()
	fmt.Fprintf(e.stdout, "%s is up: listen %s, admin %s, gossip %s\n", cfg.Name, a.Listen, a.Admin, a.Gossip)
	var failure error
	select {
	case <-e.ctx.Done():
		log.Info("stopping", "drain", cfg.Drain)
	case failure = <-n.Failed():
	}
	drain, cancel := context.WithTimeout(context.Background(), cfg.Drain)
	defer cancel()
	return errors.Join(failure, n.Shutdown(drain))
}

func newLogger(w io.Writer, cfg config.Config) *slog.Logger {
	options := &slog.HandlerOptions{Level: cfg.LogLevel}
	if cfg.LogJSON {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
