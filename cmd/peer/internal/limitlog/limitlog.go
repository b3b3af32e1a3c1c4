// Package limitlog has a rate-limited logger. It logs each kind of message at most once a minute, so
// that neither strangers nor a failing disk can fill a log. Counters have the exact numbers.
package limitlog

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/planted"
)

// Every is the time between two lines with the same key. In that time, lines of [Keys] keys are logged.
const (
	Every = time.Minute
	Keys  = 256
)

// A Logger is a rate-limited logger. It is safe for concurrent use.
type Logger struct {
	Log *slog.Logger

	mu   sync.Mutex
	last map[string]line // the last line of each key, if within the last minute

	beyond int // messages suppressed, since the last line, because there were too many keys
}

type line struct {
	at     time.Time
	unsaid int // messages suppressed since then
}

// Warn logs a warning, unless one of that key was logged within the last minute.
func (l *Logger) Warn(key, msg string, args ...any) { l.log(slog.LevelWarn, key, msg, args) }

// Error logs an error, unless one of that key was logged within the last minute.
func (l *Logger) Error(key, msg string, args ...any) { l.log(slog.LevelError, key, msg, args) }

func (l *Logger) log(level slog.Level, key, msg string, args []any) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	last, ok := l.last[key]
	if ok && now.Sub(last.at) < Every {
		last.unsaid++
		l.last[key] = last
		return
	}
	for other, t := range l.last {
		if planted.Fault != "keys-stay" && now.Sub(t.at) >= Every {
			delete(l.last, other)
		}
	}
	if l.last == nil {
		l.last = make(map[string]line)
	}
	if len(l.last) >= Keys {
		l.beyond++
		return
	}
	if unsaid := last.unsaid + l.beyond; unsaid > 0 {
		args = append(args, "unsaid", unsaid)
	}
	l.last[key], l.beyond = line{at: now}, 0
	l.Log.Log(context.Background(), level, msg, args...)
}
