package node

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// quiet logs each thing at most once a minute, so that nobody outside can fill
// a log. It is safe for concurrent use.
type quiet struct {
	log *slog.Logger

	mu   sync.Mutex
	told map[string]time.Time // by key; within the last minute
}

const quietFor = time.Minute

func (q *quiet) warn(key, msg string, args ...any) { q.tell(slog.LevelWarn, key, msg, args...) }

func (q *quiet) error(key, msg string, args ...any) { q.tell(slog.LevelError, key, msg, args...) }

// tell logs unless it has, of this key, within the last minute.
func (q *quiet) tell(level slog.Level, key, msg string, args ...any) {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if at, ok := q.told[key]; ok && now.Sub(at) < quietFor {
		return
	}
	for other, at := range q.told {
		if now.Sub(at) >= quietFor {
			delete(q.told, other)
		}
	}
	if q.told == nil {
		q.told = make(map[string]time.Time)
	}
	q.told[key] = now
	q.log.Log(context.Background(), level, msg, args...)
}
