package store

import (
	"log/slog"
	"sync"
	"time"
)

// complaints keeps a bad disk from filling the log: it warns once a minute, and
// then of how often it held its tongue. Counters tell the rest.
type complaints struct {
	mu     sync.Mutex
	last   time.Time // by the monotonic clock
	unsaid int
}

const complaintsApart = time.Minute

func (c *complaints) warn(log *slog.Logger, msg string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.last.IsZero() && time.Since(c.last) < complaintsApart {
		c.unsaid++
		return
	}
	if c.unsaid > 0 {
		args = append(args, "unsaid", c.unsaid)
	}
	c.last, c.unsaid = time.Now(), 0
	log.Warn(msg, args...)
}
