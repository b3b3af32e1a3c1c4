package gossip

import (
	"context"
	"log"
	"log/slog"
	"net"
	"strings"
)

// memberlistLogger writes memberlist's lines to slog. Its errors become warnings, since memberlist
// continues after them.
func memberlistLogger(l *slog.Logger) *log.Logger { return log.New(levelWriter{l}, "", 0) }

type levelWriter struct{ l *slog.Logger }

var memberlistLevels = map[string]slog.Level{
	"[DEBUG]": slog.LevelDebug - 4, // a line for each packet and stream
	"[INFO]":  slog.LevelDebug,
	"[WARN]":  slog.LevelInfo,
	"[ERR]":   slog.LevelWarn,
	"[ERROR]": slog.LevelWarn,
}

func (w levelWriter) Write(b []byte) (int, error) {
	tag, line, _ := strings.Cut(strings.TrimSpace(string(b)), " ")
	level := memberlistLevels[tag]
	// These are normal: a peer that was restarted refutes messages about its former life, and one
	// that stops has probes under way.
	if strings.Contains(line, "Refuting a") || strings.Contains(line, net.ErrClosed.Error()) {
		level = slog.LevelDebug
	}
	w.l.Log(context.Background(), level, strings.TrimPrefix(line, "memberlist: "), "from", "memberlist")
	return len(b), nil
}
