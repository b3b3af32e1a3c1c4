package main

import (
	"cmp"
	"io"
	"log/slog"
	"strings"

	"github.com/summarycache/summarycache/cmd/peer/internal/config"
	"github.com/summarycache/summarycache/cmd/peer/internal/node"
)

// A reloader reads the configuration again and applies the settings that can change.
type reloader struct {
	args     []string
	log      *slog.Logger
	level    *slog.LevelVar
	node     *node.Node
	cfg      config.Config
	settings []config.Effective // as last applied
}

// reload reads and applies the configuration. One with mistakes is refused whole. The
// access log is reopened in any case, since log rotation must work with a broken configuration.
func (r *reloader) reload() {
	if err := r.node.ReopenAccessLog(); err != nil {
		r.log.Error("the access log could not be reopened; continuing in the former file", "err", err)
	}
	cfg, settings, err := r.read()
	var applied, waiting []string
	if err == nil {
		applied, waiting = r.changed(cfg, settings)
		err = r.node.Reload(cfg)
	}
	if err != nil {
		for _, e := range leaves(err) {
			r.log.Error("the configuration is not reloaded", "err", e)
		}
		return
	}
	r.level.Set(cfg.LogLevel)
	if cfg.Secret != nil && r.cfg.Secret != nil {
		r.cfg.Secret, r.cfg.AcceptSecrets = cfg.Secret, cfg.AcceptSecrets
	}
	if cfg.HTTPS != nil && r.cfg.HTTPS != nil {
		r.cfg.HTTPS = cfg.HTTPS
	}
	r.cfg.LogLevel, r.cfg.Drain, r.cfg.StoreSize, r.cfg.Rules = cfg.LogLevel, cfg.Drain, cfg.StoreSize, cfg.Rules
	for i, s := range settings {
		if node.Reloadable[s.Name] {
			r.settings[i] = s
		}
	}
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

// changed names the settings that differ from those last applied, separated by
// whether they can be applied now. A default that follows from another setting does not
// count as changed.
func (r *reloader) changed(cfg config.Config, settings []config.Effective) (applied, waiting []string) {
	secure := cfg.Secret != nil && r.cfg.Secret != nil
	for i, s := range settings {
		was := r.settings[i]
		differs := s.Value != was.Value && (s.Source != "default" || was.Source != "default")
		switch {
		case s.Name == "secret-file" && secure:
			if !node.SameSecrets(cfg, r.cfg) {
				applied = append(applied, s.Name)
			}
		case s.Name == "tls-cert" && !differs:
			if !cfg.PeerTLS.Same(r.cfg.PeerTLS) {
				applied = append(applied, s.Name)
			}
		case s.Name == "https-cert" && !differs:
			if !node.SameHTTPS(cfg, r.cfg) {
				applied = append(applied, s.Name)
			}
		case differs && node.Reloadable[s.Name]:
			applied = append(applied, s.Name)
		case differs && s.Name != "config":
			waiting = append(waiting, s.Name)
		}
	}
	return applied, waiting
}
