package gossip

import (
	"context"
	"log"
	"log/slog"
	"net"
	"strings"
)

// memberlistLogger writes memberlist's lines to slog. Its errors become warnings, since memberlist
// continues after them. Strangers can cause some, so that lines of one cause are limited.
func memberlistLogger(l *limiter) *log.Logger { return log.New(levelWriter{l}, "", 0) }

type levelWriter struct{ l *limiter }

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
	line = strings.TrimPrefix(line, "memberlist: ")
	if level < slog.LevelInfo {
		w.l.logger.Log(context.Background(), level, line, "from", "memberlist")
	} else {
		w.l.log(level, "memberlist "+causeOf(line), line, "from", "memberlist")
	}
	return len(b), nil
}

// causeOf returns what a line of memberlist says before its first detail: an error, or an address, whose
// port differs for each stream.
func causeOf(line string) string {
	line, _, _ = strings.Cut(line, ": ")
	line, _, _ = strings.Cut(line, " from=")
	return line
}
