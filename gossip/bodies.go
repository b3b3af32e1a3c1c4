package gossip

import (
	"sync"

	"github.com/summarycache/summarycache/gossip/exchange"
)

// bodies caches encoded answers: after a publication all peers get the same delta, and peers that
// join at the same time the same snapshots.
type bodies struct {
	mu    sync.Mutex
	max   int // bytes
	size  int
	known map[exchange.AnswerKey]func() []byte // encodes the frame at the first call
	made  []made                               // oldest first
}

type made struct {
	key  exchange.AnswerKey
	size int
}

const (
	bodiesMax   = 16 << 20 // bytes
	bodiesCount = 1024
)

func newBodies(max int) *bodies {
	return &bodies{max: max, known: make(map[exchange.AnswerKey]func() []byte)}
}

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
			c.keep(made{key, len(b)})
			return b
		})
		c.known[key] = frame
	}
	c.mu.Unlock()
	return frame()
}

// keep registers an encoded frame, and drops the oldest ones beyond the limits.
func (c *bodies) keep(m made) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made = append(c.made, m)
	c.size += m.size
	for c.size > c.max || len(c.made) > bodiesCount {
		oldest := c.made[0]
		c.made = c.made[1:]
		c.size -= oldest.size
		delete(c.known, oldest.key)
	}
}
