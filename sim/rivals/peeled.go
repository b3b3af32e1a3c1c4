package rivals

import (
	"errors"
	"math"

	"github.com/summarycache/summarycache/sim/lab"
)

// A peeled structure assigns slots to each key. Their exclusive-or is the key's fingerprint.
type peeled struct {
	places  int // slots a key
	segment int // slots from which each of them is taken
	starts  int // segments in which a key's first slot may be
	seed    uint64
}

// A peeledShape says how many slots a set of n keys gets.
type peeledShape func(n int) peeled

// fuse4Shape is that of Graf and Lemire's binary fuse filters of four places, of 2022.
func fuse4Shape(n int) peeled {
	size := float64(n)
	segment := 1 << int(math.Log(size)/math.Log(2.91)-0.5)
	slots := max(1.075, 0.77+0.305*math.Log(6e5)/math.Log(size))
	return peeled{places: 4, segment: segment, starts: max(1, int(math.Ceil(slots*size/float64(segment)))-3)}
}

func (p peeled) slots() int { return p.segment * (p.starts + p.places - 1) }

// of returns the slots of a key, all different.
func (p peeled) of(key uint64, at *[4]int) []int {
	h := lab.Mix64(key + p.seed)
	start := int(lab.High(h, uint64(p.starts)))
	for i := range p.places {
		h = lab.Mix64(h + lab.Golden64)
		at[i] = (start+i)*p.segment + int(lab.High(h, uint64(p.segment)))
	}
	return at[:p.places]
}

func fingerprintOf(key uint64, width int) uint32 {
	return uint32(lab.Mix64(key^lab.Golden64)) & (1<<width - 1)
}

// peelAttempts is how many seeds are tried. Each fails for a few sets.
const peelAttempts = 100

// peel finds an order of the keys, and a slot of each key that no later key in this order has.
// If it fails, it tries another seed.
func (p *peeled) peel(keys []uint64) (order, own []int, err error) {
	for range peelAttempts {
		if order, own = p.peelOnce(keys); len(order) == len(keys) {
			return order, own, nil
		}
		p.seed = lab.Mix64(p.seed + lab.Golden64)
	}
	return nil, nil, errors.New("the keys cannot be peeled")
}

func (p *peeled) peelOnce(keys []uint64) (order, own []int) {
	count, which := make([]int, p.slots()), make([]int, p.slots()) // number of keys of a slot, and the exclusive-or of their indices
	var at [4]int
	for i, k := range keys {
		for _, s := range p.of(k, &at) {
			count[s]++
			which[s] ^= i
		}
	}
	var single []int
	for s, c := range count {
		if c == 1 {
			single = append(single, s)
		}
	}
	// Each slot becomes single at most once, so this ends.
	for len(single) > 0 {
		s := single[len(single)-1]
		single = single[:len(single)-1]
		if count[s] != 1 {
			continue
		}
		i := which[s]
		order, own = append(order, i), append(own, s)
		for _, other := range p.of(keys[i], &at) {
			count[other]--
			which[other] ^= i
			if count[other] == 1 {
				single = append(single, other)
			}
		}
	}
	return order, own
}

// fill sets the slots so that each key's exclusive-or is its fingerprint.
func (p peeled) fill(keys []uint64, order, own []int, width int) []uint32 {
	slots := make([]uint32, p.slots())
	for j := len(order) - 1; j >= 0; j-- {
		key := keys[order[j]]
		slots[own[j]] ^= p.sum(slots, key) ^ fingerprintOf(key, width)
	}
	return slots
}

func (p peeled) sum(slots []uint32, key uint64) (v uint32) {
	var at [4]int
	for _, s := range p.of(key, &at) {
		v ^= slots[s]
	}
	return v
}

// fixedRival is a filter of fingerprints in a peeled structure.
func fixedRival(shape peeledShape) builder {
	return func(width int, keys, _ []uint64) (rival, error) {
		p := shape(len(keys))
		order, own, err := p.peel(keys)
		if err != nil {
			return rival{}, err
		}
		slots := p.fill(keys, order, own, width)
		size := width * p.slots()
		contains := func(k uint64) bool { return p.sum(slots, k) == fingerprintOf(k, width) }
		return rival{contains: contains, memory: size, message: size}, nil
	}
}
