package feed

import (
	"sync"

	"github.com/summarycache/summarycache/digest"
)

// A Publisher makes messages of what one cache holds. Safe for concurrent use.
type Publisher struct {
	counters *digest.CountingFilter
	history  *digest.History

	mu       sync.Mutex
	snapshot []byte // of version of, so that it is encoded once for all who ask
	of       digest.Version
}

// NewPublisher returns a publisher of c, which keeps changes of up to logBytes of memory
// to answer from; 4 MiB last for some half a million flips, and none with zero. Nobody
// else may freeze c. Each life of a cache must begin with a greater epoch than any
// before (see [digest.NewCountingFilter]), such as the time. Replicas get over a smaller
// one, but after some messages only. [digest.Limits.Accept] says beforehand whether
// replicas will take so large a filter: of a hundred million keys they do with limits
// raised.
func NewPublisher(c *digest.CountingFilter, logBytes int) *Publisher {
	p := &Publisher{counters: c, history: digest.NewHistory(logBytes)}
	p.history.Advance(c.Advance())
	return p
}

// Next freezes what the cache holds and returns a message for all replicas: what has
// changed since the last call, or, if nothing has, which version is current, in some
// 60 bytes. Send it now and then even so: only thus do replicas learn of the last change
// if that was lost.
func (p *Publisher) Next() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.history.Current()
	f, d := p.counters.AdvanceDelta()
	if d == nil || d.Base() != last.Version() {
		p.history.Advance(f)
		return p.since(f.Version())
	}
	p.history.AdvanceDelta(f, d)
	return encode(d, last)
}

// Since returns what a replica lacks that holds version v: the change in one message, or
// a snapshot if there is no record of v, as of the zero Version.
func (p *Publisher) Since(v digest.Version) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.since(v)
}

func (p *Publisher) since(v digest.Version) []byte {
	if d, base, ok := p.history.Since(v); ok {
		return encode(d, base)
	}
	if f := p.history.Current(); p.of != f.Version() {
		p.snapshot, p.of = f.AppendTo(nil), f.Version()
	}
	return append([]byte(nil), p.snapshot...)
}

func encode(d *digest.Delta, base *digest.Filter) []byte {
	b, err := d.AppendTo(nil, base)
	if err != nil {
		panic(err) // the history only has bases that fit
	}
	return b
}
