package gossip

import (
	"context"
	"log"
	"log/slog"
	"net"
	"strings"
)

// memberlistLogger writes memberlist's lines to slog, as one message with what each says, since strangers
// can cause some of them. Its errors become warnings, since memberlist continues after them.
func memberlistLogger(l *slog.Logger) *log.Logger { return log.New(levelWriter{l}, "", 0) }

type levelWriter struct{ log *slog.Logger }

var memberlistLevels = map[string]slog.Level{
	"[DEBUG]": slog.LevelDebug - 4, // a line for each packet and stream
	"[INFO]":  slog.LevelDebug,
	"[WARN]":  slog.LevelWarn,
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
	says := beforeDetail(line)
	w.log.Log(context.Background(), level, "memberlist", "says", says, "detail", line[len(says):])
	return len(b), nil
}

// beforeDetail returns what a line of memberlist says before its first detail: an error, or an address,
// whose port differs for each stream.
func beforeDetail(line string) string {
	line, _, _ = strings.Cut(line, ": ")
	line, _, _ = strings.Cut(line, " from=")
	return line
}
