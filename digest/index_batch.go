package digest

// A batch is the memory for a question about several keys, or one about more peers
// than the stack has room for.
type batch struct {
	memory                     []uint64
	found, part, total, ranked []uint64 // sets of places, but ranked of ranks
	counts, starts             []uint32 // by place; by count
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
	b.counts = renew(b.counts, 64*n)
	return v
}

// find makes found the places of all whose filters say yes for k.
func (b *batch) find(x *Index, v *view, k Key) {
	clear(b.found)
	x.collect(v, k, b.found, b.part)
}
