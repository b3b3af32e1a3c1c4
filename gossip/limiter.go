package gossip

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"
)

// limiter is a rate-limited logger: it logs each key at most once a minute, and few keys in all, so
// that strangers cannot fill a log. Costly arguments should be a [slog.LogValuer].
type limiter struct {
	logger *slog.Logger
	mu     sync.Mutex
	last   map[string]time.Time
}

const (
	limiterQuiet = time.Minute
	limiterSize  = 256
)

func newLimiter(l *slog.Logger) *limiter {
	return &limiter{logger: l, last: make(map[string]time.Time)}
}

// log logs unless the same key was logged within the last minute.
func (l *limiter) log(level slog.Level, key, msg string, args ...any) {
	if l.due(key, time.Now()) {
		l.logger.Log(context.Background(), level, msg, args...)
	}
}

func (l *limiter) due(key string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	lately := func(at time.Time) bool { return now.Sub(at) < limiterQuiet }
	if at, ok := l.last[key]; ok && lately(at) {
		return false
	}
	maps.DeleteFunc(l.last, func(_ string, at time.Time) bool { return !lately(at) })
	if len(l.last) >= limiterSize {
		return false
	}
	l.last[key] = now
	return true
}
