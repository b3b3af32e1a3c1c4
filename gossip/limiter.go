package gossip

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"
)

// limiter is a rate-limited logger: it logs each key at most once a minute, and few keys in all, so
// that strangers cannot fill a log. A line says how many were left out before it. Costly arguments
// should be a [slog.LogValuer].
type limiter struct {
	logger *slog.Logger
	mu     sync.Mutex
	last   map[string]limited
	beyond int // lines left out, since the last line, because there were too many keys
}

type limited struct {
	at     time.Time
	unsaid int // lines left out since then
}

const (
	limiterQuiet = time.Minute
	limiterSize  = 256
)

func newLimiter(l *slog.Logger) *limiter {
	return &limiter{logger: l, last: make(map[string]limited)}
}

// log logs unless the same key was logged within the last minute.
func (l *limiter) log(level slog.Level, key, msg string, args ...any) {
	due, unsaid := l.due(key, time.Now())
	if !due {
		return
	}
	if unsaid > 0 {
		args = append(args, "unsaid", unsaid)
	}
	l.logger.Log(context.Background(), level, msg, args...)
}

func (l *limiter) due(key string, now time.Time) (due bool, unsaid int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lately := func(at time.Time) bool { return now.Sub(at) < limiterQuiet }
	last, ok := l.last[key]
	if ok && lately(last.at) {
		last.unsaid++
		l.last[key] = last
		return false, 0
	}
	maps.DeleteFunc(l.last, func(_ string, other limited) bool { return !lately(other.at) })
	if len(l.last) >= limiterSize {
		l.beyond++
		return false, 0
	}
	unsaid = last.unsaid + l.beyond
	l.last[key], l.beyond = limited{at: now}, 0
	return true, unsaid
}
