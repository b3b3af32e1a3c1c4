// Package limitlog has a rate-limited logger: it logs each thing at most once a minute, so
// that neither strangers nor a bad disk can fill a log. Counters tell the rest.
package limitlog

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Every is the time between two lines with the same key.
const Every = time.Minute

// A Logger is a rate-limited logger. It is safe for concurrent use.
type Logger struct {
	Log *slog.Logger

	mu   sync.Mutex
	told map[string]line // by key; within the last minute
}

type line struct {
	at     time.Time
	unsaid int // how often it was not logged since
}

// Warn logs a warning, unless one of that key was logged within the last minute.
func (l *Logger) Warn(key, msg string, args ...any) { l.log(slog.LevelWarn, key, msg, args) }

// Error logs an error, likewise.
func (l *Logger) Error(key, msg string, args ...any) { l.log(slog.LevelError, key, msg, args) }

func (l *Logger) log(level slog.Level, key, msg string, args []any) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	last, ok := l.told[key]
	if ok && now.Sub(last.at) < Every {
		last.unsaid++
		l.told[key] = last
		return
	}
	for other, t := range l.told {
		if now.Sub(t.at) >= Every {
			delete(l.told, other)
		}
	}
	if l.told == nil {
		l.told = make(map[string]line)
	}
	l.told[key] = line{at: now}
	if last.unsaid > 0 {
		args = append(args, "unsaid", last.unsaid)
	}
	l.Log.Log(context.Background(), level, msg, args...)
}
