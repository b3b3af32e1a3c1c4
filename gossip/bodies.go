package gossip

import (
	"sync"

	"github.com/summarycache/summarycache/gossip/exchange"
)

// bodies keeps encoded answers: after a publication everyone asks for the same
// delta, and while many join for the same snapshots.
type bodies struct {
	mu    sync.Mutex
	max   int // bytes
	size  int
	known map[exchange.AnswerKey]*body
	queue []exchange.AnswerKey // oldest first
}

type body struct {
	done  chan struct{} // closed when frame is there
	frame []byte
}

const bodiesMax = 16 << 20

func newBodies(max int) *bodies {
	return &bodies{max: max, known: make(map[exchange.AnswerKey]*body)}
}

// frame returns the bytes of a, made once however many ask at the same time. The
// caller must not change them.
func (c *bodies) frame(a exchange.Answer) []byte {
	key := a.Key()
	if key == (exchange.AnswerKey{}) {
		return a.AppendTo(nil)
	}
	c.mu.Lock()
	if b := c.known[key]; b != nil {
		c.mu.Unlock()
		<-b.done
		return b.frame
	}
	b := &body{done: make(chan struct{})}
	c.known[key] = b
	c.queue = append(c.queue, key)
	c.mu.Unlock()

	b.frame = a.AppendTo(nil)
	close(b.done)

	c.mu.Lock()
	c.size += len(b.frame)
	c.evict()
	c.mu.Unlock()
	return b.frame
}

// evict drops the oldest until the rest fits. One still being made has no size
// yet, and stays.
func (c *bodies) evict() {
	keep := c.queue[:0]
	for _, key := range c.queue {
		b := c.known[key]
		select {
		case <-b.done:
			if c.size > c.max || len(c.known) > 1024 {
				c.size -= len(b.frame)
				delete(c.known, key)
				continue
			}
		default:
		}
		keep = append(keep, key)
	}
	c.queue = keep
}
