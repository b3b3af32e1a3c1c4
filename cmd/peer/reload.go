package main

import (
	"io"
	"log/slog"
	"strings"

	"github.com/summarycache/summarycache/cmd/peer/internal/config"
	"github.com/summarycache/summarycache/cmd/peer/internal/node"
)

// A reloader reads the configuration again and applies what can be applied.
type reloader struct {
	args     []string
	log      *slog.Logger
	level    *slog.LevelVar
	node     *node.Node
	cfg      config.Config
	settings []config.Effective // as they were applied last
}

// reload returns the configuration that holds from now on. One with mistakes is
// refused whole.
func (r *reloader) reload() {
	cfg, settings, err := r.read()
	if err == nil {
		err = r.node.Reload(cfg)
	}
	if err != nil {
		for _, e := range leaves(err) {
			r.log.Error("the configuration is not reloaded", "err", e)
		}
		return
	}
	applied, waiting := r.changed(cfg, settings)
	r.level.Set(cfg.LogLevel)
	if cfg.Secret != nil && r.cfg.Secret != nil {
		r.cfg.Secret, r.cfg.AcceptSecrets = cfg.Secret, cfg.AcceptSecrets
	}
	r.cfg.LogLevel, r.cfg.Drain, r.cfg.StoreSize = cfg.LogLevel, cfg.Drain, cfg.StoreSize
	for i, s := range settings {
		if node.Reloadable[s.Name] {
			r.settings[i] = s
		}
	}
	r.log.Info("reloaded the configuration", "changed", strings.Join(applied, ","))
	if len(waiting) > 0 {
		r.log.Warn("these settings changed, and hold from the next start on", "settings", strings.Join(waiting, ","))
	}
}

// read parses the command line, the environment and the file again.
func (r *reloader) read() (config.Config, []config.Effective, error) {
	var g grammar
	parser, err := newParser(&g, io.Discard, io.Discard)
	if err != nil {
		return config.Config{}, nil, err
	}
	ctx, err := parser.Parse(r.args)
	if err != nil {
		return config.Config{}, nil, err
	}
	return config.Load(ctx, &g.Run.Settings)
}

// changed names the settings that differ from those applied last, apart by
// whether they can be applied now.
func (r *reloader) changed(cfg config.Config, settings []config.Effective) (applied, waiting []string) {
	for i, s := range settings {
		differs := s.Value != r.settings[i].Value
		if s.Name == "secret-file" {
			differs = !node.SameSecrets(cfg, r.cfg)
		}
		switch {
		case differs && (node.Reloadable[s.Name] || s.Name == "secret-file" && cfg.Secret != nil && r.cfg.Secret != nil):
			applied = append(applied, s.Name)
		case differs && s.Name != "config":
			waiting = append(waiting, s.Name)
		}
	}
	return applied, waiting
}
