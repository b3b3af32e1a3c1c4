package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/cmd/peer/internal/config"
	"github.com/summarycache/summarycache/cmd/peer/internal/node"
)

type reloadCommand struct {
	DryRun   bool `name:"dry-run"`
	operator `embed:""`
}

func (c *reloadCommand) Help() string {
	return `Has a running peer read its configuration again, as SIGHUP does: its file, and the files that it names. Everything is applied, or nothing if there is a mistake, which is then shown and the exit code is 1. Requests under way end as they began. A setting that needs a restart is such a mistake; it is named, with the reason.`
}

func (c *reloadCommand) Run(e *environment) error {
	token, err := c.token()
	if err != nil {
		return err
	}
	report, err := admin.Client(c.Admin).Reload(e.ctx, admin.ReloadRequest{DryRun: c.DryRun}, token)
	if err != nil {
		return err
	}
	return show(e, c.JSON, report, admin.ReloadText)
}

// A reloader reads the configuration again and applies the settings that can change.
type reloader struct {
	args     []string
	level    *slog.LevelVar
	started  context.Context // ends when the fields below are set
	log      *slog.Logger
	node     *node.Node
	name     string
	settings []config.Effective // as last applied
	drain    time.Duration
	delay    time.Duration // before drain

	checking  atomic.Pointer[context.CancelCauseFunc] // ends the check of a program that goes on
	addresses map[string]string                       // of the listening sockets, by their settings
}

var errStarting = errors.New("the peer is starting: try again")

// reread reads and applies the configuration. One with mistakes is refused whole. The access log is
// reopened in any case, since log rotation must work with a broken configuration. In a dry run nothing
// changes.
func (r *reloader) reread(dryRun bool) (report admin.ReloadReport, err error) {
	if r.started.Err() == nil {
		return report, errStarting
	}
	if !dryRun {
		if err := r.node.ReopenAccessLog(); err != nil {
			r.log.Error("the access log could not be reopened; continuing in the former file", "err", err)
		}
	}
	cfg, settings, err := r.read()
	var files []string
	if err == nil {
		files, err = r.node.Apply(cfg, r.where(settings), dryRun)
	}
	if err == nil {
		report = r.compare(files, settings)
	}
	if dryRun {
		return report, err
	}
	if err != nil {
		for _, e := range leaves(err) {
			r.log.Error("the configuration is not reloaded", "err", e)
		}
		return report, err
	}
	r.level.Set(cfg.LogLevel)
	r.drain, r.delay = cfg.Drain, cfg.DrainDelay
	r.settings = settings
	r.log.Info("reloaded the configuration", "changed", cmp.Or(namesOf(report.Changed), "nothing"))
	return report, nil
}

// where says where the settings are, without those that are left at their defaults, and were before.
func (r *reloader) where(settings []config.Effective) map[string]string {
	where := make(map[string]string)
	for i, s := range settings {
		if s.Source != "default" {
			where[s.Name] = s.Source + ": " + s.Name
		} else if r.settings[i].Source != "default" {
			where[s.Name] = "--" + s.Name
		}
	}
	return where
}

// read parses the command line, the environment and the file again.
func (r *reloader) read() (config.Config, []config.Effective, error) {
	var g grammar
	parser, flags, err := newParser(&g, io.Discard, io.Discard)
	if err != nil {
		return config.Config{}, nil, err
	}
	ctx, err := parser.Parse(r.args)
	if err != nil {
		return config.Config{}, nil, err
	}
	settings, err := flags.Load(ctx, &g.Run.Config)
	return g.Run.Config, settings, err
}

// compare returns how the settings differ from those last applied. Settings whose files have changed differ. A default
// that follows from another setting does not.
func (r *reloader) compare(files []string, settings []config.Effective) admin.ReloadReport {
	report := admin.ReloadReport{Changed: []admin.Change{}}
	for i, s := range settings {
		was := r.settings[i]
		same := s.Value == was.Value || s.Source == "default" && was.Source == "default" || s.Name == "config"
		if !same || slices.Contains(files, s.Name) {
			report.Changed = append(report.Changed, admin.Change{Setting: s.Name, Was: was.Value, Now: s.Value})
		}
	}
	return report
}

func namesOf(changes []admin.Change) string {
	var names []string
	for _, c := range changes {
		names = append(names, c.Setting)
	}
	return strings.Join(names, ",")
}
