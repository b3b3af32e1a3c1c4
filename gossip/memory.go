package gossip

import (
	"fmt"
	"sync"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/bloom"
	"github.com/summarycache/summarycache/gossip/exchange"
)

// Memory is a part of a budget for the memory of a process. Its methods are called from many goroutines
// and must not call the node.
type Memory interface {
	Take(bytes int64) bool // adds to what is held, and reports whether there is room; if not, nothing is added
	Give(bytes int64)      // takes back what Take added
}

// unbounded is the memory of a node whose limits have none.
type unbounded struct{}

func (unbounded) Take(int64) bool { return true }
func (unbounded) Give(int64)      {}

// perFrameByte is the memory that a byte of a received answer takes: its filter, the index, the answer itself.
const perFrameByte = 8

// costOf returns the memory of a replica and its part of the index, in bytes.
func costOf(f *digest.Filter) int64 {
	if f == nil {
		return 0
	}
	g := f.Geometry()
	return int64(f.MemoryBytes()) + int64(min(bloom.EntryBytes*f.Ones(), g.Bits/8))
}

// digestLedger counts the memory of the others' digests: what was last measured, and what was added
// since.
type digestLedger struct {
	memory Memory
	mu     sync.Mutex
	held   int64
}

func (l *digestLedger) take(bytes int64) error {
	if bytes <= 0 {
		return nil
	}
	if !l.memory.Take(bytes) {
		return fmt.Errorf("gossip: %w: no memory for %d bytes", digest.ErrTooLarge, bytes)
	}
	return nil
}

// add counts a replica that replaces base, or nil. taken was taken for it already.
func (l *digestLedger) add(base, f *digest.Filter, taken int64) error {
	grows := max(0, costOf(f)-costOf(base))
	if err := l.take(grows - taken); err != nil {
		l.memory.Give(taken)
		return err
	}
	if taken > grows {
		l.memory.Give(taken - grows)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held += grows
	return nil
}

// measured sets what digests take. What can't be had, they hold all the same: it is taken later.
func (l *digestLedger) measured(bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch more := bytes - l.held; {
	case more < 0:
		l.memory.Give(-more)
		l.held = bytes
	case more > 0 && l.memory.Take(more):
		l.held = bytes
	}
}

// digestBytes returns the memory of the index and of all replicas, also those of dead peers.
func (h *host) digestBytes() int64 {
	bytes := int64(h.index.MemoryBytes())
	table := *h.members.Load()
	h.with(func(e *exchange.Engine) {
		for name := range table {
			if r, ok := e.Replica(name); ok && r.Filter != nil {
				bytes += int64(r.Filter.MemoryBytes())
			}
		}
	})
	return bytes
}

// An incoming is the memory of an answer that is being received and decoded.
type incoming struct {
	of    *digestLedger
	bytes int64
}

// room takes memory for an answer of so many bytes.
func (c *incoming) room(bytes int) error {
	c.release() // of an answer on another connection, which broke
	need := perFrameByte * int64(bytes)
	if err := c.of.take(need); err != nil {
		return err
	}
	c.bytes = need
	return nil
}

// release gives back what was taken, and has no effect the second time.
func (c *incoming) release() {
	if c.bytes > 0 {
		c.of.memory.Give(c.bytes)
		c.bytes = 0
	}
}
