package gossip

import (
	"bytes"
	"context"
	"log"
	"log/slog"
	"net"
)

// memberlistLogger passes memberlist's lines on to slog, at their level; what
// memberlist calls an error is a warning here, since it goes on.
func memberlistLogger(l *slog.Logger) *log.Logger {
	return log.New(levelWriter{l}, "", 0)
}

type levelWriter struct{ l *slog.Logger }

var memberlistLevels = []struct {
	prefix string
	level  slog.Level
}{
	{"[DEBUG] ", slog.LevelDebug - 4}, // a line for each packet and stream
	{"[INFO] ", slog.LevelDebug},
	{"[WARN] ", slog.LevelInfo},
	{"[ERR] ", slog.LevelWarn},
	{"[ERROR] ", slog.LevelWarn},
}

// memberlistUsual are in the lines about what happens at each restart: a peer that
// comes back contradicts what is said of its former life, and one that stops has
// probes under way.
var memberlistUsual = []string{"Refuting a", net.ErrClosed.Error()}

func (w levelWriter) Write(b []byte) (int, error) {
	line, level := bytes.TrimSpace(b), slog.LevelInfo
	for _, m := range memberlistLevels {
		if rest, ok := bytes.CutPrefix(line, []byte(m.prefix)); ok {
			line, level = rest, m.level
			break
		}
	}
	for _, usual := range memberlistUsual {
		if bytes.Contains(line, []byte(usual)) {
			level = slog.LevelDebug
		}
	}
	if w.l.Enabled(context.Background(), level) {
		w.l.Log(context.Background(), level, string(bytes.TrimPrefix(line, []byte("memberlist: "))), "from", "memberlist")
	}
	return len(b), nil
}
