package index

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/summarycache/summarycache/digest"
)

// An Index is an index over the filters of all peers. Create one with [New]. All methods are safe for
// concurrent use.
//
// Lookups never wait for updates, and allocate nothing beyond the caller's slice. During an update, a
// lookup may see a part of the changes. It never misses a key that a peer's filter has before and
// after the update. Updates exclude each other, but a change by a delta waits for a whole filter only for
// a part of it, some milliseconds at most.
type Index struct {
	view  atomic.Pointer[view] // with which lookups begin; replaced as a whole
	table table

	whole  sync.Mutex // before write: held by updates that let go of write in between
	write  sync.Mutex // guards what follows, and the table
	peers  map[string]*indexed
	order  []*indexed // best first
	places uint32     // ever used
	held   int        // bytes of the filters that are looked up one by one
	limit  int        // bytes; 0 for none
	buffer []uint64

	scratch sync.Pool // of *batch
}

// A Match is a peer whose filter has the key.
type Match struct {
	Peer              string
	Part              string  // of a peer with several filters: see [Part]
	FalsePositiveRate float64 // probability that the peer's filter has a key that the peer does not hold, 0 to 1
}

// Part returns a name for one of several filters of a peer, such as those of its memory and its disk, or
// of a shard. It stands for the peer in [Index.Set], [Index.Apply] and [Index.Delete]. Each part that has a
// key is a match; [Index.Prefixes] takes the parts of a peer together.
func Part(peer, part string) string { return peer + "\x00" + part }

// New returns an empty index.
func New() *Index {
	x := &Index{
		peers: make(map[string]*indexed),
	}
	x.table.init()
	x.publish()
	return x
}

// SetMemoryLimit bounds the memory of the index to about this many bytes; 0 or less means no bound,
// which is the default. Peers in the index stay.
func (x *Index) SetMemoryLimit(bytes int) {
	x.begun().write.Lock()
	defer x.write.Unlock()
	x.limit = max(0, bytes)
}

// Set sets the filter of a peer. Its time is proportional to f's positions, and most of it goes into
// those that the previous filter lacks. If the changes are known, [Index.Apply] takes less. If the
// index would exceed the limit of [Index.SetMemoryLimit], the peer is forgotten, and the error wraps
// [digest.ErrTooLarge]; there is no other error.
func (x *Index) Set(peer string, f *digest.Filter) error { return x.Apply(Change{Peer: peer, Next: f}) }

// begun returns x, unless it is the zero Index, which has no view.
func (x *Index) begun() *Index {
	x.now()
	return x
}

// now returns the present view.
func (x *Index) now() *view {
	if x != nil {
		if v := x.view.Load(); v != nil {
			return v
		}
	}
	panic("index: a nil or zero Index: use New")
}

// A Change is of a peer's filter.
type Change struct {
	Peer  string
	Delta *digest.Delta // from the last filter to Next; nil if there is none
	Next  *digest.Filter
}

// setAtOnce bounds the filters that are set together: as many filters' positions are in memory, and none
// is found before all are there. With 64 or 256 nothing was faster.
const setAtOnce = 16

// Apply changes the filters of peers, of each in the order given. By a delta, that takes time in proportion to the
// delta's length. If the peer's filter is not the delta's base, or there is no delta, Apply does the same as
// [Index.Set], but for 16 different peers together: a peer that starts gets filters of all others, and applies them
// in two thirds of the time. Its error joins those of Set.
func (x *Index) Apply(changes ...Change) (err error) {
	x.begun()
	var whole []Change
	flush := func() {
		if len(whole) > 0 {
			err = errors.Join(err, x.setAll(whole))
			whole = whole[:0]
		}
	}
	for _, c := range changes {
		switch {
		case c.Next == nil:
			panic("index: Set or Apply without a filter of " + c.Peer + ": to forget a peer, use Delete")
		case c.Peer == "":
			panic("index: Set or Apply for \"\": want the name of a peer, which matches have")
		}
		if len(whole) == setAtOnce || slices.ContainsFunc(whole, func(w Change) bool { return w.Peer == c.Peer }) {
			flush()
		}
		if c.Delta == nil || !x.applied(c.Peer, c.Delta, c.Next) {
			whole = append(whole, c)
		}
	}
	flush()
	return err
}

// setAll sets filters of different peers, at most setAtOnce.
func (x *Index) setAll(changes []Change) error {
	x.begun().whole.Lock()
	defer x.whole.Unlock()
	x.write.Lock()
	defer x.write.Unlock()
	x.table.pause = x.pause
	defer func() { x.table.pause = nil }()
	return x.set(changes)
}

// applied changes a peer in place by d, if that is possible.
func (x *Index) applied(peer string, d *digest.Delta, next *digest.Filter) bool {
	x.begun().write.Lock()
	defer x.write.Unlock()
	old := x.peers[peer]
	return old != nil && !old.spoiled && leads(d, old.filter.Load(), next) && x.layoutFor(next, old) == old.layout && old.layout != separate &&
		(old.layout != inTable || x.reserve(peer, 4*uint64(d.Len())) == nil) && x.change(old, d, next)
}

// leads reports whether d leads from one filter to another one of the same family.
func leads(d *digest.Delta, from, to *digest.Filter) bool {
	family := keyOf(to.Geometry())
	return d.Base() == from.Version() && d.Target() == to.Version() && keyOf(d.Geometry()) == family && keyOf(from.Geometry()) == family
}

// pause lets others have the index for a moment in which it is complete, but for the peers that are being
// set, to which no delta can be applied. A mutex is given to a waiter that has waited for a millisecond.
func (x *Index) pause() {
	x.table.pause = nil
	x.write.Unlock()
	x.write.Lock()
	x.table.pause = x.pause
}

// Delete forgets a peer, which ceases to match at once. Its memory is reused or freed during later
// updates. It has no effect for an unknown peer.
func (x *Index) Delete(peer string) {
	x.begun().whole.Lock()
	defer x.whole.Unlock()
	x.write.Lock()
	defer x.write.Unlock()
	x.table.pause = x.pause
	defer func() { x.table.pause = nil }()
	if e := x.peers[peer]; e != nil {
		x.forget(e)
	}
}

// Len returns the number of peers.
func (x *Index) Len() int { return len(x.now().order) }

// MemoryBytes returns the memory of the index, with the filters that it looks up one by one. It does
// not count the other filters, which the caller has as well.
func (x *Index) MemoryBytes() int {
	x.begun().write.Lock()
	defer x.write.Unlock()
	return x.bytes()
}

func (x *Index) bytes() int {
	const perPeer = 320 // the struct, its name, its places in the map and in views
	return x.table.bytes() + x.held + perPeer*len(x.peers) + 8*cap(x.buffer)
}

// reserve forgets the peer and returns an error if need more bytes would exceed the limit.
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

// set sets filters of different peers.
func (x *Index) set(changes []Change) error {
	var errs error
	var moving []*indexed // to their layouts
	need := uint64(0)
	for _, c := range changes {
		e, bytes, err := x.begin(c, need)
		errs = errors.Join(errs, err)
		if e != nil {
			moving = append(moving, e)
			need += bytes
		}
	}
	if len(moving) == 0 {
		return errs
	}
	x.settle(moving)
	var replaced []*indexed
	ones := 0
	for _, e := range moving {
		if old := x.peers[e.name]; old != nil { // it may have been forgotten meanwhile
			replaced = append(replaced, old)
			x.unrank(old)
		}
		x.peers[e.name] = e
		x.rank(e)
		ones += int(e.filter.Load().Ones())
	}
	x.publish()
	for _, old := range replaced {
		x.abandon(old)
	}
	x.table.sweepSome(ones)
	return errs
}

// begin changes a peer to its next filter by the positions that differ, if that takes less. If c's delta leads from
// the last filter, it has these positions. Otherwise begin returns the peer's new state, to be settled, and about
// how many bytes it takes, beside reserved ones.
func (x *Index) begin(c Change, reserved uint64) (e *indexed, need uint64, err error) {
	d, f := c.Delta, c.Next
	old := x.peers[c.Peer]
	to, key := x.layoutFor(f, old), keyOf(f.Geometry())
	need = x.needOf(f, to)
	inPlace := old != nil && old.layout == to && old.key == key && !old.spoiled
	if inPlace {
		last := old.filter.Load()
		if d != nil && !leads(d, last, f) {
			d = nil
		}
		switch {
		case to != inTable:
			need = 0
		case d != nil:
			need = 4 * uint64(d.Len())
		default: // if the sizes differ much, the table should be planned anew
			inPlace = f.Ones()/2 <= last.Ones() && last.Ones()/2 <= f.Ones()
		}
	}
	if err := x.reserve(c.Peer, reserved+need); err != nil {
		return nil, 0, err
	}
	if inPlace && x.change(old, d, f) {
		return nil, 0, nil
	}
	e = &indexed{name: c.Peer, key: key, layout: to, place: x.takePlace()}
	e.store(f)
	return e, need, nil
}
