package index

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/summarycache/summarycache/digest"
)

// An Index answers for the filters of all peers at once. Make one with [New]. All
// methods are safe for concurrent use.
//
// Lookups never wait, whatever the updates, and allocate nothing beyond the
// caller's slice. During an update a lookup may see some of what changes; a key
// that a peer's filter has before and after it is never missed. Updates exclude
// each other.
type Index struct {
	view  atomic.Pointer[view] // what lookups begin with; replaced as a whole
	table table

	write     sync.Mutex
	peers     map[string]*indexed
	order     []*indexed // best first
	groups    map[family]*rows
	separates map[family]int // how many are asked one by one
	places    uint32         // that were ever used
	held      int            // bytes of filters that are asked one by one
	limit     int            // bytes; 0 for none
	buffer    []uint64

	scratch sync.Pool // of *scratch, for more peers than the stack has room for
}

// A Match is a peer whose filter says yes.
type Match struct {
	Peer              string
	FalsePositiveRate float64 // odds that a filter such as the peer's says yes for nothing, 0 to 1
}

// New returns an empty index.
func New() *Index {
	x := &Index{
		peers:     make(map[string]*indexed),
		groups:    make(map[family]*rows),
		separates: make(map[family]int),
	}
	x.table.init()
	x.publish()
	return x
}

// SetMemoryLimit bounds the memory of the index to about so many bytes; 0 or less
// means no bound, as at first. What is in the index already stays.
func (x *Index) SetMemoryLimit(bytes int) {
	x.write.Lock()
	defer x.write.Unlock()
	x.limit = max(0, bytes)
}

// Set makes f what is known of peer, in place of what was. It takes time in proportion to
// f's positions, most of it for those that were not known before; for a peer whose changes
// are known, [Index.Apply] takes less. If the index would exceed the limit of
// [Index.SetMemoryLimit], the peer is forgotten, and the error wraps [digest.ErrTooLarge];
// there is no other error.
func (x *Index) Set(peer string, f *digest.Filter) error { return x.Apply(peer, nil, f) }

// Apply brings what is known of peer from d's base to its target, which is next.
// It takes time in proportion to d's length. If what is known of peer is not d's
// base, or d is nil, Apply does what [Index.Set] does. Errors are those of Set.
func (x *Index) Apply(peer string, d *digest.Delta, next *digest.Filter) error {
	x.write.Lock()
	defer x.write.Unlock()
	return x.set(peer, d, next)
}

// Delete forgets peer, which ceases to match at once. Its memory is used again or
// freed in the course of later updates. It has no effect for a peer that is not there.
func (x *Index) Delete(peer string) {
	x.write.Lock()
	defer x.write.Unlock()
	if e := x.peers[peer]; e != nil {
		x.forget(e)
	}
}

// Len returns how many peers are known.
func (x *Index) Len() int { return len(x.view.Load().order) }

// MemoryBytes returns what the index occupies, those filters included that it asks
// one by one. The others that it refers to are not counted: they are the caller's.
func (x *Index) MemoryBytes() int {
	x.write.Lock()
	defer x.write.Unlock()
	return x.bytes()
}

func (x *Index) bytes() int {
	const perPeer = 320 // the struct, its name, its places in the map and in views
	n := x.table.bytes() + x.held + perPeer*len(x.peers) + 8*cap(x.buffer)
	for _, g := range x.groups {
		n += g.bytes()
	}
	return n
}

// reserve forgets the peer and returns an error if there is no memory for need
// more bytes.
func (x *Index) reserve(peer string, need uint64) error {
	if x.limit == 0 {
		return nil
	}
	have := uint64(x.bytes())
	if have+need > uint64(x.limit) && x.table.dead > 0 {
		x.table.sweepAll()
		have = uint64(x.bytes())
	}
	if have+need <= uint64(x.limit) {
		return nil
	}
	if e := x.peers[peer]; e != nil {
		x.forget(e)
	}
	return fmt.Errorf("index: %s: %w: %d bytes and %d more, %d allowed", peer, digest.ErrTooLarge, have, need, x.limit)
}

// set makes f the filter of a peer: by the positions that differ where that takes less, of
// which d is the list if it leads from the last filter to f.
func (x *Index) set(peer string, d *digest.Delta, f *digest.Filter) error {
	old := x.peers[peer]
	to, key := x.layoutFor(f, old), keyOf(f.Geometry())
	need := x.needOf(f, to)
	inPlace := old != nil && old.layout == to && old.key == key
	if inPlace {
		last := old.filter.Load()
		if d != nil && (d.Base() != last.Version() || d.Target() != f.Version() || keyOf(d.Geometry()) != key) {
			d = nil
		}
		switch {
		case to != inTable:
			need = 0
		case d != nil:
			need = 4 * uint64(d.Len())
		default: // if the sizes are very different, the table should be, too
			inPlace = f.Ones()/2 <= last.Ones() && last.Ones()/2 <= f.Ones()
		}
	}
	if err := x.reserve(peer, need); err != nil {
		return err
	}
	if inPlace && x.change(old, d, f) {
		return nil
	}
	e := &indexed{name: peer, key: key, layout: to, place: x.takePlace()}
	x.settle(e, f)
	x.peers[peer] = e
	if old != nil {
		x.unrank(old)
	}
	x.rank(e)
	x.publish()
	if old != nil {
		x.abandon(old)
	}
	x.table.sweepSome(int(f.Ones()))
	return x.gather(e)
}
