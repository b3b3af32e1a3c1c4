package main

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// A peeled structure assigns slots to each key. In xor filters, binary fuse filters and
// Bloomier filters, their exclusive-or is the key's value. In a perfect hash, they say which of
// them belongs to the key.
type peeled struct {
	places  int // slots a key
	segment int // slots from which each of them is taken
	starts  int // segments in which a key's first slot may be
	seed    uint64
}

// A peeledShape says how many slots a set of n keys gets.
type peeledShape func(n int) peeled

// xorShape is that of Graf and Lemire's xor filters of 2020. The shapes below are those of
// their binary fuse filters of 2022.
func xorShape(n int) peeled {
	return peeled{places: 3, segment: int(math.Ceil((1.23*float64(n) + 32) / 3)), starts: 1}
}

func fuse3Shape(n int) peeled {
	return fuseShape(n, 3, math.Log(float64(n))/math.Log(3.33)+2.25, max(1.125, 0.875+0.25*math.Log(1e6)/math.Log(float64(n))))
}

func fuse4Shape(n int) peeled {
	return fuseShape(n, 4, math.Log(float64(n))/math.Log(2.91)-0.5, max(1.075, 0.77+0.305*math.Log(6e5)/math.Log(float64(n))))
}

func fuseShape(n, places int, logSegment, slots float64) peeled {
	segment := 1 << int(logSegment)
	return peeled{places: places, segment: segment, starts: max(1, int(math.Ceil(slots*float64(n)/float64(segment)))-places+1)}
}

func (p peeled) slots() int { return p.segment * (p.starts + p.places - 1) }

// of returns the slots of a key, all different.
func (p peeled) of(key uint64, at *[4]int) []int {
	h := mix64(key + p.seed)
	start := int(high(h, uint64(p.starts)))
	for i := range p.places {
		h = mix64(h + golden64)
		at[i] = (start+i)*p.segment + int(high(h, uint64(p.segment)))
	}
	return at[:p.places]
}

func fingerprintOf(key uint64, width int) uint32 { return uint32(mix64(key^golden64)) & (1<<width - 1) }

// peelAttempts is how many seeds are tried. Each fails for a few sets.
const peelAttempts = 100

// peel finds an order of the keys, and a slot of each key that no later key in this order has.
// If it fails, it tries another seed.
func (p *peeled) peel(keys []uint64) (order, own []int, err error) {
	for range peelAttempts {
		if order, own = p.peelOnce(keys); len(order) == len(keys) {
			return order, own, nil
		}
		p.seed = mix64(p.seed + golden64)
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

// fill sets the slots so that each key's exclusive-or is its value.
func (p peeled) fill(keys []uint64, order, own []int, value func(i int) uint32) []uint32 {
	slots := make([]uint32, p.slots())
	var at [4]int
	for j := len(order) - 1; j >= 0; j-- {
		v := value(order[j])
		for _, s := range p.of(keys[order[j]], &at) {
			v ^= slots[s]
		}
		slots[own[j]] ^= v
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
		slots := p.fill(keys, order, own, func(i int) uint32 { return fingerprintOf(keys[i], width) })
		size := width * p.slots()
		return rival{func(k uint64) bool { return p.sum(slots, k) == fingerprintOf(k, width) }, size, size, 0}, nil
	}
}

// perfectRival assigns to each key a place of its own among n, which has the key's fingerprint.
// Each slot has two bits. Their sum over a key's three slots says which of these is the key's
// own slot; 3 marks a slot that belongs to no key. A place's number is the number of owned
// slots before it.
func perfectRival(width int, keys, _ []uint64) (rival, error) {
	p := xorShape(len(keys))
	order, own, err := p.peel(keys)
	if err != nil {
		return rival{}, err
	}
	choice := make([]uint8, p.slots())
	for s := range choice {
		choice[s] = 3
	}
	owned := make([]uint64, len(choice)/64+1)
	var at [4]int
	for j := len(order) - 1; j >= 0; j-- {
		sum, mine := 0, 0
		for i, s := range p.of(keys[order[j]], &at) {
			if s == own[j] {
				mine = i
			} else {
				sum += int(choice[s]) % 3
			}
		}
		choice[own[j]] = uint8((mine - sum%3 + 3) % 3)
		owned[own[j]/64] |= 1 << (own[j] % 64)
	}
	ranks := make([]uint32, len(owned))
	for i := 1; i < len(ranks); i++ {
		ranks[i] = ranks[i-1] + uint32(bits.OnesCount64(owned[i-1]))
	}
	place := func(k uint64) (int, bool) {
		var at [4]int
		places := p.of(k, &at)
		s := places[(int(choice[places[0]]%3)+int(choice[places[1]]%3)+int(choice[places[2]]%3))%3]
		return int(ranks[s/64]) + bits.OnesCount64(owned[s/64]&(1<<(s%64)-1)), choice[s] != 3
	}
	fingerprints := make([]uint32, len(keys))
	for _, k := range keys {
		i, _ := place(k)
		fingerprints[i] = fingerprintOf(k, width)
	}
	contains := func(k uint64) bool {
		i, mine := place(k)
		return mine && fingerprints[i] == fingerprintOf(k, width)
	}
	message := 2*p.slots() + width*len(keys)
	return rival{contains, message + p.slots()/8, message, 0}, nil // a rank of 32 bits for 256 slots
}

// values compares structures with a value for each key: section 9.3 of the lecture.
func values(job *Job) error {
	table := job.Table(fmt.Sprintf("values of %d bits with each key, f = 2^-%d, n = %d", rivalValues, rivalBits, structureKeys),
		Column{Name: "structure"},
		Column{Name: "bits", Head: "bits a key", Format: "%.2f", Loose: exact},
		Column{Name: "wrong", Head: "wrong values of keys that are there"},
		Column{Name: "believed", Head: "believed, of a million absent keys", Loose: exact})
	keys, next := rivalSets(job.Rand(33), structureKeys, structureKeys*rivalShare)
	for _, s := range []struct {
		name  string
		shape peeledShape
	}{{"Bloomier filter, xor", xorShape}, {"Bloomier filter, binary fuse of 4", fuse4Shape}} {
		p := s.shape(len(keys))
		order, own, err := p.peel(keys)
		if err != nil {
			return err
		}
		want := func(key uint64) uint32 { return uint32(mix64(key) >> (64 - rivalValues)) }
		slots := p.fill(keys, order, own, func(i int) uint32 {
			return fingerprintOf(keys[i], rivalBits)<<rivalValues | want(keys[i])
		})
		wrong, believed := 0, 0
		for _, k := range keys {
			if p.sum(slots, k) != fingerprintOf(k, rivalBits)<<rivalValues|want(k) {
				wrong++
			}
		}
		rng := job.Rand(34)
		for range rivalProbes {
			if k := rng.Uint64(); p.sum(slots, k)>>rivalValues == fingerprintOf(k, rivalBits) {
				believed++
			}
		}
		table.Row(s.name, float64((rivalBits+rivalValues)*p.slots())/structureKeys, wrong, believed)
	}
	f, _, _, err := digestPair(rivalBits, 1, keys, next)
	if err != nil {
		return err
	}
	table.Row("one hash, compressed, and the values in the order of its positions", (8*float64(len(f.AppendTo(nil)))+rivalValues*float64(f.Ones()))/structureKeys, nil, nil)
	table.Row("keys of 64 bits and values", float64(64+rivalValues), 0, 0)
	table.Note("In the order of positions, two keys with one position share a value: one key in some %d.", 2<<rivalBits)
	return nil
}
