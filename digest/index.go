package digest

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// An Index answers which peers may hold a key. Lookups never wait for updates
// and never allocate beyond the caller's slice. Safe for concurrent use.
type Index struct {
	peers atomic.Pointer[[]indexed] // ordered by false-positive rate, then name; replaced as a whole
	write sync.Mutex
}

type indexed struct {
	match  Match
	filter *Filter
}

// A Match is a peer whose filter says yes.
type Match struct {
	Peer              string
	FalsePositiveRate float64 // odds that a filter such as the peer's says yes for nothing, 0 to 1
}

// NewIndex returns an empty index.
func NewIndex() *Index {
	x := new(Index)
	x.peers.Store(new([]indexed))
	return x
}

// Set makes f what is known of peer, in place of what was. A lookup during the
// change sees the one or the other.
func (x *Index) Set(peer string, f *Filter) {
	x.replace(peer, []indexed{{Match{peer, f.FalsePositiveRate()}, f}})
}

// Clear forgets peer, which ceases to match at once.
func (x *Index) Clear(peer string) { x.replace(peer, nil) }

func (x *Index) replace(peer string, with []indexed) {
	x.write.Lock()
	defer x.write.Unlock()
	next := slices.Clone(*x.peers.Load())
	next = slices.DeleteFunc(next, func(e indexed) bool { return e.match.Peer == peer })
	next = append(next, with...)
	slices.SortFunc(next, func(a, b indexed) int {
		return cmp.Or(cmp.Compare(a.match.FalsePositiveRate, b.match.FalsePositiveRate),
			strings.Compare(a.match.Peer, b.match.Peer))
	})
	x.peers.Store(&next)
}

// Lookup appends to dst the peers whose filters say yes for k, those whose yes
// means most first.
func (x *Index) Lookup(dst []Match, k Key) []Match {
	for _, e := range *x.peers.Load() {
		if e.filter.MayContain(k) {
			dst = append(dst, e.match)
		}
	}
	return dst
}

// Len returns how many peers are known.
func (x *Index) Len() int { return len(*x.peers.Load()) }
