package feed

import (
	"sync"

	"github.com/summarycache/summarycache/digest"
)

// A Publisher makes messages of what one cache holds. Safe for concurrent use.
type Publisher struct {
	held    *digest.Set
	history *digest.History

	mu       sync.Mutex
	snapshot []byte // encoding of the filter that of identifies, made once for all requests
	of       digest.Version
}

// NewPublisher returns a publisher of held. It keeps the last changes, in up to logBytes of
// memory, to answer [Publisher.Since]: 4 MiB hold about half a million flips, and zero holds
// none. Nothing else may freeze its filter. Each life of a cache must begin with a greater epoch than
// any before, such as the time (see [digest.PlanSet]). Replicas recover from a
// smaller epoch, but only after some messages. [digest.Limits.Accept] says beforehand whether
// replicas will take so large a filter. For more than 47 million keys their limits must be raised.
func NewPublisher(held *digest.Set, logBytes int) *Publisher {
	held.Inside().Settle()
	p := &Publisher{held: held, history: digest.NewHistory(logBytes)}
	p.history.Advance(held.Filter().Advance())
	return p
}

// ready panics if the publisher has nothing to publish.
func (p *Publisher) ready() {
	if p == nil || p.held == nil {
		panic("feed: a nil or zero Publisher: use NewPublisher")
	}
}

// Next freezes what the cache holds and returns a message for all replicas: what has
// changed since the last call or, if nothing has, the current version, in about 35 bytes.
// Call and send it now and then even if nothing changes: otherwise replicas that lost the
// last change do not notice.
func (p *Publisher) Next() []byte {
	p.ready()
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.history.Current()
	f, d := p.held.Filter().AdvanceDelta()
	if d.Base() != last.Version() { // a rebuild has frozen a version as well
		p.history.Advance(f)
		return p.since(f.Version())
	}
	p.history.AdvanceDelta(f, d)
	return encode(d, last)
}

// Since returns what a replica that holds version v lacks: the change in one message, or
// a snapshot if there is no record of v, as for the zero Version.
func (p *Publisher) Since(v digest.Version) []byte {
	p.ready()
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
		panic(err) // the history returns bases that fit
	}
	return b
}
