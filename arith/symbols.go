package arith

import "math/bits"

// Symbols is an adaptive model over the alphabet 0..n-1. Every symbol starts
// with a count of one, and coding it adds one to its count. The counts are
// kept as Fenwick's binary indexed tree, as Moffat, Neal and Witten keep them,
// so a symbol costs O(log n) steps.
//
// A Symbols is not safe for concurrent use.
type Symbols struct {
	tree  []uint64 // tree[i] sums the counts of the symbols in (i - i&-i, i], counted from 1
	total uint64
	limit uint64 // counts are halved before total would pass it
	step  int    // the largest power of two <= n
}

// NewSymbols returns a model of n equally likely symbols. It panics unless
// 1 <= n <= 1<<24.
func NewSymbols(n int) *Symbols {
	if n < 1 || n > 1<<24 {
		panic("arith: NewSymbols needs 1 <= n <= 1<<24")
	}
	s := &Symbols{tree: make([]uint64, n+1), limit: MaxTotal, step: 1 << (bits.Len(uint(n)) - 1)}
	s.Reset()
	return s
}

// Reset forgets everything: all symbols are equally likely again.
func (s *Symbols) Reset() {
	for i := range s.tree {
		s.tree[i] = uint64(i & -i)
	}
	s.total = uint64(s.Len())
}

// Len returns the number of symbols in the alphabet.
func (s *Symbols) Len() int { return len(s.tree) - 1 }

// EncodeSymbol codes symbol, in [0, Len), under model, which learns it.
func (e *Encoder) EncodeSymbol(model *Symbols, symbol int) {
	start := model.before(symbol)
	end := model.before(symbol + 1)
	e.Encode(start, end, model.total)
	model.learn(symbol)
}

// DecodeSymbol returns the symbol that [Encoder.EncodeSymbol] coded under the
// same model in the same state, which learns it.
func (d *Decoder) DecodeSymbol(model *Symbols) int {
	symbol, start := model.find(d.Target(model.total))
	end := model.before(symbol + 1)
	d.Consume(start, end, model.total)
	model.learn(symbol)
	return symbol
}

// before returns the sum of the counts of the symbols below symbol.
func (s *Symbols) before(symbol int) uint64 {
	sum := uint64(0)
	for i := symbol; i > 0; i &= i - 1 {
		sum += s.tree[i]
	}
	return sum
}

// find returns the symbol that owns frequency f, and the sum below it.
func (s *Symbols) find(f uint64) (symbol int, start uint64) {
	for step := s.step; step > 0; step >>= 1 {
		if i := symbol + step; i < len(s.tree) && start+s.tree[i] <= f {
			symbol = i
			start += s.tree[i]
		}
	}
	return symbol, start
}

func (s *Symbols) learn(symbol int) {
	if s.total == s.limit {
		s.halve()
	}
	s.add(symbol, 1)
}

func (s *Symbols) add(symbol int, count uint64) {
	for i := symbol + 1; i < len(s.tree); i += i & -i {
		s.tree[i] += count
	}
	s.total += count
}

// halve halves every count, rounding up so that none becomes zero.
func (s *Symbols) halve() {
	for symbol := range s.Len() {
		count := s.before(symbol+1) - s.before(symbol)
		s.add(symbol, -(count / 2))
	}
}
