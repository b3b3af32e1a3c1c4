package gossip

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// limiter logs each thing at most once a minute, so that nobody outside can fill
// a log. Arguments that are costly to make should be a [slog.LogValuer].
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
	now := time.Now()
	l.mu.Lock()
	if at, ok := l.last[key]; ok && now.Sub(at) < limiterQuiet {
		l.mu.Unlock()
		return
	}
	if len(l.last) >= limiterSize {
		for k, at := range l.last {
			if now.Sub(at) >= limiterQuiet {
				delete(l.last, k)
			}
		}
		if len(l.last) >= limiterSize {
			l.mu.Unlock()
			return
		}
	}
	l.last[key] = now
	l.mu.Unlock()
	l.logger.Log(context.Background(), level, msg, args...)
}
