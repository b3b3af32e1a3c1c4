package main

import (
	"cmp"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/config"
	"github.com/summarycache/summarycache/cmd/peer/internal/node"
)

// A reloader reads the configuration again and applies the settings that can change.
type reloader struct {
	args     []string
	log      *slog.Logger
	level    *slog.LevelVar
	node     *node.Node
	name     string
	drain    time.Duration
	settings []config.Effective // as last applied
}

// reload reads and applies the configuration. One with mistakes is refused whole. The
// access log is reopened in any case, since log rotation must work with a broken configuration.
func (r *reloader) reload() {
	if err := r.node.ReopenAccessLog(); err != nil {
		r.log.Error("the access log could not be reopened; continuing in the former file", "err", err)
	}
	cfg, settings, err := r.read()
	var applied []string
	if err == nil {
		applied, err = r.node.Reload(cfg)
	}
	if err != nil {
		for _, e := range leaves(err) {
			r.log.Error("the configuration is not reloaded", "err", e)
		}
		return
	}
	r.level.Set(cfg.LogLevel)
	r.drain = cfg.Drain
	applied, waiting := r.changed(applied, settings)
	if len(applied) > 0 || len(waiting) == 0 {
		r.log.Info("reloaded the configuration", "changed", cmp.Or(strings.Join(applied, ","), "nothing"))
	}
	if len(waiting) > 0 {
		r.log.Warn("these settings changed and take effect at the next start", "settings", strings.Join(waiting, ","))
	}
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

// changed returns the settings that differ from those last applied: those that are applied now, which
// include applied, and those that wait for the next start. A default that follows from another setting
// does not count as changed.
func (r *reloader) changed(applied []string, settings []config.Effective) (_, waiting []string) {
	for i, s := range settings {
		was := r.settings[i]
		switch {
		case s.Value == was.Value || s.Source == "default" && was.Source == "default" || s.Name == "config":
		case slices.Contains(applied, s.Name), s.Name == "https-key" && slices.Contains(applied, "https-cert"):
			r.settings[i] = s
		case node.Reloadable[s.Name]:
			applied = append(applied, s.Name)
			r.settings[i] = s
		default:
			waiting = append(waiting, s.Name)
		}
	}
	return applied, waiting
}
