package sibling

import "sync"

// A tally is a struct of counts that many goroutines add to.
type tally[T any] struct {
	mu sync.Mutex
	n  T
}

// add adds to one of the counts in t.n.
func (t *tally[T]) add(count *uint64, n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	*count += n
}

func (t *tally[T]) read() T {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.n
}

// Stats count what became of questions. All start at 0 and only grow.
type Stats struct {
	Asked         uint64 // questions answered or given up, without those by [Lookup.Only] that found nothing
	Hits          uint64 // of those, answered with an object that was of use
	FalseHits     uint64 // of those, answered that there is no fresh copy, or with what was of no use
	Errors        uint64 // of those, failed, too slow, or broken off within the body
	Overtaken     uint64 // of those, answered first by another that was asked later
	Hedges        uint64 // questions, to the origin included, asked while another was unanswered
	HedgesWon     uint64 // of those, answered first
	Origins       uint64 // hedges to the origin that a sibling overtook after all
	HedgesDenied  uint64 // hedges that there was no budget for
	FetchesShared uint64 // of Hits, objects from siblings that were fetching them
	Excused       uint64 // of Errors, those not held against the sibling, since this process itself was late, or most siblings were
	Spared        uint64 // questions not asked, since too many were lost
	Bytes         uint64 // of bodies received
}

// Stats returns the counts as they are.
func (c *Client) Stats() Stats { return c.stats.read() }

func (c *Client) count(n *uint64) { c.stats.add(n, 1) }

// CacheStats count what became of what a [Cache] was asked for. All start at 0 and only
// grow. What siblings were asked is in [Client.Stats].
type CacheStats struct {
	Gets     uint64 // calls of Get, and requests to Serve that may be answered from the store
	Hits     uint64 // of those, answered from the store
	Joined   uint64 // of those, that waited for another's load
	Siblings uint64 // objects that a sibling gave
	Loads    uint64 // calls of load, or of the handler for what may be stored
	Errors   uint64 // of those, that failed

	Questions     uint64 // of siblings
	Answered      uint64 // of those, with an object
	Invalidations uint64 // by this peer and by others
}

// Stats returns the counts as they are.
func (c *Cache) Stats() CacheStats { return c.stats.read() }

func (c *Cache) count(n *uint64) { c.stats.add(n, 1) }
