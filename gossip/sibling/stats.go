package sibling

import "sync"

// A tally is counters that are safe for concurrent use.
type tally struct {
	mu sync.Mutex
	n  Stats
}

// add adds to one of the counters in t.n.
func (t *tally) add(count *uint64, n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	*count += n
}

// Stats counts requests to siblings. All counters start at 0 and only grow.
type Stats struct {
	Asked         uint64 // requests answered or given up, without those by [Lookup.Only] that found nothing
	Hits          uint64 // of those, answered with a usable object
	FalseHits     uint64 // of those, answered without a fresh copy, or with one that was not usable
	Errors        uint64 // of those, failed, too slow, or broken off within the body
	Overtaken     uint64 // of those, overtaken by the answer of another source that was asked later
	Hedges        uint64 // requests, to origins included, sent while another one was unanswered
	HedgesWon     uint64 // of those, answered first
	Origins       uint64 // hedges to origins that a sibling overtook after all
	HedgesDenied  uint64 // hedges that the budget did not allow
	FetchesShared uint64 // of Hits, objects from siblings that were still fetching them
	// of Errors, not held against the sibling, since this process ran late or most siblings did not answer
	Excused uint64
	Bytes   uint64 // of bodies received
}

// Stats returns the current counters.
func (c *Client) Stats() Stats {
	c.stats.mu.Lock()
	defer c.stats.mu.Unlock()
	return c.stats.n
}

func (c *Client) count(n *uint64) { c.stats.add(n, 1) }
