package index

import "github.com/summarycache/summarycache/digest"

// A batch is the memory for a lookup of several keys, or of more peers than the stack has
// room for.
type batch struct {
	memory                     []uint64
	found, part, total, ranked []uint64       // sets of places, but ranked of ranks
	lines                      [ahead]keyLine // of the keys to come
	chain                      chainSearch
}

func (x *Index) borrow() *batch {
	if b, ok := x.scratch.Get().(*batch); ok {
		return b
	}
	return new(batch)
}

// begin takes a view and empties the memory.
func (b *batch) begin(x *Index) *view {
	v := x.view.Load()
	n := v.words()
	b.memory = renew(b.memory, 4*n)
	b.found, b.part = b.memory[:n:n], b.memory[n:2*n:2*n]
	b.total, b.ranked = b.memory[2*n:3*n:3*n], b.memory[3*n:]
	return v
}

// several appends the peers that find leaves in the total of a batch. It starts again if
// another view has come meanwhile.
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

// ahead is how many keys in advance a line is prefetched; what the line refers to is
// prefetched half as many in advance.
const ahead = 8

// find makes found the places of the peers whose filters say yes for the i-th of keys. Keys
// must be asked for in order.
func (b *batch) find(x *Index, v *view, keys []digest.Key, i int) {
	if i == 0 {
		for j := range min(ahead, len(keys)) {
			b.ask(x, keys, j)
		}
		for j := range min(ahead/2, len(keys)) {
			b.lines[j].prefetchMore()
		}
	}
	l := b.lines[i%ahead]
	if i+ahead < len(keys) {
		b.ask(x, keys, i+ahead)
	}
	if i+ahead/2 < len(keys) {
		b.lines[(i+ahead/2)%ahead].prefetchMore()
	}
	clear(b.found)
	x.collect(v, keys[i], l, b.found, b.part)
}

func (b *batch) ask(x *Index, keys []digest.Key, i int) {
	l := x.table.lineOf(uint64(keys[i]))
	prefetch(&l.words[0])
	b.lines[i%ahead] = l
}
