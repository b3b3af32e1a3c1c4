package main

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"github.com/cespare/xxhash/v2"
)

// A symbol is a coded symbol: the sums of the items that are mapped to it.
type symbol struct {
	items, hashes uint64 // by exclusive or
	count         int64
}

func (s *symbol) add(v item, times int64) {
	s.items ^= v.value
	s.hashes ^= v.hash
	s.count += times
}

func (s *symbol) empty() bool { return *s == symbol{} }

// An item is a member of a set, on its way along the symbols to which it is mapped: the first one, and then symbol i
// with probability 1/(1+i/2), independently (Yang, Gilad and Alizadeh, section 4.1).
type item struct {
	value, hash uint64
	at          uint64 // the symbol that is next
	way         rand.PCG
}

func newItem(value uint64) item {
	h := xxhash.Sum64(binary.LittleEndian.AppendUint64(nil, value))
	return item{value: value, hash: h, way: *rand.NewPCG(h, value)}
}

// advance goes to the next symbol. That from symbol i is beyond i+d with a probability of about (i+1.5)²/(i+d+1.5)²,
// which is inverted here (section 4.2).
func (v *item) advance() {
	u := float64(v.way.Uint64()>>11+1) / (1 << 53) // above 0, up to 1
	v.at += max(1, uint64(math.Ceil((float64(v.at)+1.5)*(1/math.Sqrt(u)-1))))
}

// A coder makes the coded symbols of a set, one after another.
type coder struct {
	next  uint64
	items map[uint64][]item // by the symbol that is next
}

func newCoder() *coder { return &coder{items: make(map[uint64][]item)} }

// add adds an item whose next symbol was not made yet.
func (c *coder) add(v item) { c.items[v.at] = append(c.items[v.at], v) }

// symbol makes the next symbol.
func (c *coder) symbol() (s symbol) {
	due := c.items[c.next]
	delete(c.items, c.next)
	for _, v := range due {
		s.add(v, 1)
		v.advance()
		c.add(v)
	}
	c.next++
	return s
}

// A decoder finds how two sets differ from the differences of their symbols (section 3).
type decoder struct {
	symbols []symbol
	known   map[int64]*coder // of the items found so far that are in the one set (1) or the other (-1)
	found   int
}

func newDecoder() *decoder { return &decoder{known: map[int64]*coder{1: newCoder(), -1: newCoder()}} }

// add takes the difference of the two sets' next symbols, and reports whether all items that differ are known: the
// first symbol has all of them.
func (d *decoder) add(s symbol) bool {
	for sign, c := range d.known {
		k := c.symbol()
		s.items ^= k.items
		s.hashes ^= k.hashes
		s.count -= sign * k.count
	}
	d.symbols = append(d.symbols, s)
	for look := []uint64{uint64(len(d.symbols) - 1)}; len(look) > 0; {
		i := look[len(look)-1]
		look = look[:len(look)-1]
		s := d.symbols[i]
		if s.count != 1 && s.count != -1 {
			continue
		}
		v := newItem(s.items)
		if v.hash != s.hashes { // it has several items
			continue
		}
		d.found++
		for ; v.at < uint64(len(d.symbols)); v.advance() {
			d.symbols[v.at].add(v, -s.count)
			look = append(look, v.at)
		}
		d.known[s.count].add(v)
	}
	return d.symbols[0].empty()
}
