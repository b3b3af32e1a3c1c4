package engine

// A fetchState tells how far a fetch is. Only the goroutine that runs the fetch changes it. The
// package comment draws what may follow what.
type fetchState uint8

const (
	fetchAsks       fetchState = iota // its sources, one after another
	fetchFailed                       // no source answered, or the client is better served in another way
	fetchStale                        // a stale copy is served in place of an error
	fetchConfirmed                    // the stored response, by a 304
	fetchHandedOver                   // the leader alone gets the answer, as it arrives
	fetchReceives                     // a body of which nothing is delivered yet
	fetchDelivers                     // leader and followers read along
	fetchStored                       // and all later requests find it
	fetchUnstored                     // it was invalidated meanwhile, or the store failed
	fetchCut                          // no source had the rest
)

func (c *Cache) become(f *fetch, to fetchState) {
	if c.fetchBecame != nil {
		c.fetchBecame(f.state, to)
	}
	f.state = to
}
