package main

import (
	"context"
	"errors"
	"fmt"
	stdlog "log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/cmd/peer/internal/config"
	"github.com/summarycache/summarycache/cmd/peer/internal/node"
	"github.com/summarycache/summarycache/cmd/peer/internal/sd"
)

type runCommand struct {
	config.Config `embed:""`
}

func (c *runCommand) Help() string {
	return `Examples:
  A forward proxy alone, with everything on this machine:
    peer run
  A reverse proxy in a cluster of three:
    peer run --name cache-1 --listen :80 --gossip :7946 --origin http://10.0.0.9:8080 \
      --join cache-2:7946,cache-3:7946 --secret-file /etc/peer/secret --store /var/cache/peer --store-size 10GiB

SIGHUP, or "peer reload", reads the configuration again, applies it whole or refuses it, and reopens the access log. SIGTERM waits for --drain-delay, leaves the cluster and finishes the requests under way. SIGUSR2, or "peer replace", has the program file, which may be a new one, continue in this process with its listening sockets.

Flags override PEER_* variables, which override the file of --config.`
}

func (c *runCommand) Run(e *environment, ctx *kong.Context, flags *config.Flags) error {
	// a signal during the start must not end the process; it is handled afterwards
	environ, signals := os.Environ(), make(chan os.Signal, 2)
	signal.Notify(signals, append(replacing, syscall.SIGHUP)...)
	defer signal.Stop(signals)
	signal.Ignore(syscall.SIGPIPE) // whoever reads the log may go away
	settings, err := flags.Load(ctx, &c.Config)
	if err != nil {
		return misuse{err}
	}
	cfg := c.Config
	for _, w := range config.Strays(environ) { // validate refuses them
		fmt.Fprintln(e.stderr, "peer: warning:", w)
	}
	memory := newBudget(cfg.MemoryLimit)
	tuneHeap(e.ctx, memory)
	manager := sd.FromEnvironment()
	addresses := map[string]string{"listen": cfg.Listen, "admin": cfg.Admin, "https": cfg.HTTPSListen}
	continues := sd.Continues()
	sockets, err := sd.Sockets(addresses)
	if err != nil {
		return err
	}
	level := new(slog.LevelVar)
	level.Set(cfg.LogLevel)
	lines := newLossy(e.stderr)
	log := slog.New(slog.NewTextHandler(lines, &slog.HandlerOptions{Level: level}))
	if cfg.LogFormat == "json" {
		log = slog.New(slog.NewJSONHandler(lines, &slog.HandlerOptions{Level: level}))
	}
	lines.tells = func(n int64) { log.Warn("lines of the log are lost: nobody reads them", "lines", n) }
	// net/http's client logs errors that belong to no request with package log.
	stdlog.SetFlags(0)
	stdlog.SetOutput(slog.NewLogLogger(log.Handler(), slog.LevelDebug).Writer())
	started, begin := context.WithCancel(context.Background())
	defer begin()
	r := &reloader{args: e.args, level: level, started: started, name: cfg.Name, drain: cfg.Drain, delay: cfg.DrainDelay, settings: settings, addresses: addresses}
	var accepts func(context.Context) (string, error)
	if replacing != nil {
		accepts = r.accepts
	}
	n, err := node.Start(e.ctx, node.Options{Config: cfg, Budget: memory, Logger: log, Version: thisBuild().Version, Stdout: e.stdout, Reread: r.reread, Accepts: accepts, Listeners: sockets, Continues: continues})
	switch {
	case err != nil && e.ctx.Err() != nil: // stopped while starting
		return nil
	case err != nil:
		return err
	}
	log = n.Log()
	a := n.Addresses()
	https := ""
	if a.HTTPS != "" {
		https = ", https " + a.HTTPS
	}
	fmt.Fprintf(e.stdout, "%s is up: listen %s, admin %s, gossip %s%s\n", cfg.Name, a.Listen, a.Admin, a.Gossip, https)
	r.log, r.node = log, n
	begin()
	failure := watch(e.ctx, r, manager, signals)
	if failure == errReplaced {
		signal.Ignore(append(replacing, syscall.SIGHUP)...) // until the next program expects them
		return r.handOver(environ)
	}
	if failure == nil {
		log.Info("stopping", "drain", r.drain, "delay", r.delay)
	}
	tell(log, manager.Stopping("finishing the requests under way"))
	n.Retire()
	time.Sleep(r.delay) // a second signal ends the process
	drain, cancel := context.WithTimeout(context.Background(), r.drain)
	defer cancel()
	return errors.Join(failure, within(r.drain+stopGrace, func() error { return n.Shutdown(drain) }))
}

// stopGrace is how long a peer may take to stop after the requests under way have ended or were cut
// off.
const stopGrace = 10 * time.Second

// within returns the result of f, or an error if f takes too long: a part that hangs must not keep the
// process alive.
func within(limit time.Duration, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-time.After(limit):
		return fmt.Errorf("not stopped within %v: a part of the peer hangs", limit)
	}
}

// watch waits until ctx ends, a listener fails, or another program is to continue. Meanwhile it reloads on SIGHUP and
// reports to the service manager.
func watch(ctx context.Context, r *reloader, manager *sd.Notifier, signals <-chan os.Signal) error {
	var alive <-chan time.Time
	if every := manager.Watchdog(); every > 0 {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		alive = ticker.C
	}
	ready := func() { tell(r.log, manager.Ready("serving as "+r.name+" on "+r.node.Addresses().Listen)) }
	ready()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-r.node.Failed():
			return err
		case s := <-signals:
			if s != syscall.SIGHUP {
				go r.node.Replace(ctx, admin.ReplaceRequest{}) // which logs its error, and may take long
				continue
			}
			tell(r.log, manager.Reloading())
			r.node.Reload(admin.ReloadRequest{}) // which logs its error
			ready()
		case <-r.node.Replaced():
			tell(r.log, manager.Reloading()) // until the next program is ready
			return errReplaced
		case <-alive:
			if r.node.Health().OK { // otherwise the service manager restarts the process
				tell(r.log, manager.Alive())
			}
		}
	}
}

// tell logs a failed notification of the service manager.
func tell(log *slog.Logger, err error) {
	if err != nil {
		log.Warn("the service manager does not accept notifications", "err", err)
	}
}
