package index

import "github.com/summarycache/summarycache/digest"

// A batch is the memory for a lookup of several keys, or of more peers than fit the stack.
type batch struct {
	memory                     []uint64
	found, part, total, ranked []uint64       // sets of places; ranked is a set of ranks
	lines                      [ahead]keyLine // of the next keys
	chain                      chainSearch
}

func (x *Index) borrow() *batch {
	if b, ok := x.scratch.Get().(*batch); ok {
		return b
	}
	return new(batch)
}

// begin loads the view and clears the memory.
func (b *batch) begin(x *Index) *view {
	v := x.now()
	n := v.words()
	b.memory = renew(b.memory, 4*n)
	b.found, b.part = b.memory[:n:n], b.memory[n:2*n:2*n]
	b.total, b.ranked = b.memory[2*n:3*n:3*n], b.memory[3*n:]
	return v
}

// several appends the peers that find leaves in the total of a batch. It starts again if the view has
// been replaced meanwhile.
func (x *Index) several(dst []Match, find func(*batch, *view)) []Match {
	b := x.borrow()
	defer x.scratch.Put(b)
	for {
		v := b.begin(x)
		find(b, v)
		if x.view.Load() == v {
			return v.appendMatches(dst, b.total, b.ranked)
		}
	}
}

// A line is prefetched this many keys in advance, and its linked words and bitmaps half as many.
const ahead = 8

// find sets found to the places of the peers whose filters match the i-th of keys. It must be called
// for the keys in order.
func (b *batch) find(x *Index, v *view, keys []digest.Key, i int) {
	if i == 0 {
		for j := range min(ahead, len(keys)) {
			b.prefetch(x, keys, j)
		}
		for j := range min(ahead/2, len(keys)) {
			b.lines[j].prefetchMore()
		}
	}
	l := b.lines[i%ahead]
	if i+ahead < len(keys) {
		b.prefetch(x, keys, i+ahead)
	}
	if i+ahead/2 < len(keys) {
		b.lines[(i+ahead/2)%ahead].prefetchMore()
	}
	b.look(x, v, keys[i], l)
}

func (b *batch) prefetch(x *Index, keys []digest.Key, i int) {
	l := x.table.lineOf(uint64(keys[i]))
	prefetch(&l.words[0])
	b.lines[i%ahead] = l
}
