package index

// A batch is the memory for a lookup of several keys, or of more peers than fit the stack.
type batch struct {
	memory                     []uint64
	found, part, total, ranked []uint64 // sets of places; ranked is a set of ranks
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
