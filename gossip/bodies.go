package gossip

import (
	"sync"

	"github.com/summarycache/summarycache/gossip/exchange"
)

// bodies caches encoded answers: after a publication all peers get the same delta, and peers that
// join at the same time the same snapshots. When it is full, it is emptied.
type bodies struct {
	mu    sync.Mutex
	known map[exchange.AnswerKey]func() []byte // encodes the frame at the first call
	size  int                                  // bytes encoded

	memory Memory
}

const (
	bodiesMax   = 16 << 20 // bytes
	bodiesCount = 1024
)

// frame returns the encoded answer, which concurrent callers share. The caller must not change it.
func (c *bodies) frame(a exchange.Answer) []byte {
	key := a.Key()
	if key == (exchange.AnswerKey{}) {
		return a.AppendTo(nil)
	}
	c.mu.Lock()
	frame := c.known[key]
	if frame == nil {
		frame = sync.OnceValue(func() []byte {
			b := a.AppendTo(nil)
			c.mu.Lock()
			defer c.mu.Unlock()
			more := c.memory.Take(int64(len(b)))
			if more {
				c.size += len(b)
			}
			if !more || c.size > bodiesMax || len(c.known) > bodiesCount {
				clear(c.known)
				c.memory.Give(int64(c.size))
				c.size = 0
			}
			return b
		})
		c.known[key] = frame
	}
	c.mu.Unlock()
	return frame()
}
