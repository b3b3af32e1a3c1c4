package sibling

import "sync/atomic"

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
	Invalidations uint64 // of this peer and of others
}

type cacheCounters struct {
	gets, hits, joined, siblings, loads, errors, questions, answered, invalidations atomic.Uint64
}

// Stats returns the counts as they are.
func (c *Cache) Stats() CacheStats {
	n := &c.counts
	return CacheStats{
		Gets: n.gets.Load(), Hits: n.hits.Load(), Joined: n.joined.Load(), Siblings: n.siblings.Load(), Loads: n.loads.Load(), Errors: n.errors.Load(),
		Questions: n.questions.Load(), Answered: n.answered.Load(), Invalidations: n.invalidations.Load(),
	}
}
