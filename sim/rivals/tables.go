package rivals

import (
	"cmp"
	"errors"
	"slices"

	"github.com/summarycache/summarycache/sim/lab"
)

// cuckooRival has buckets of four fingerprints. A lookup compares eight of these, so they are
// three bits wider than 1/f needs. In a message they are sorted within their bucket, which
// saves a bit each.
func cuckooRival(width int, keys, next []uint64) (rival, error) {
	width += 3
	size := int(float64(len(keys))/4/0.95) + 1
	f := newCuckooFilter(size, width)
	for _, k := range keys {
		f.insert(k)
	}
	before := slices.Clone(f.buckets)
	was := cuckooFilter{before, f.spilled, width}
	if len(f.spilled) > 0 {
		return rival{}, errors.New("the cuckoo table is too full")
	}
	for i := range next {
		if next[i] != keys[i] {
			f.remove(keys[i])
			f.insert(next[i])
		}
	}
	var changed []uint64
	update := 0
	for b := range before {
		old := before[b]
		came, left := 0, 0
		for _, fingerprint := range f.buckets[b] {
			if i := slices.Index(old[:], fingerprint); i >= 0 {
				old[i] = 0
				continue
			}
			came++
		}
		for _, fingerprint := range old {
			if fingerprint != 0 {
				left++
			}
		}
		if came+left > 0 {
			changed = append(changed, uint64(b))
			update += 2 + 2*left + width*came
		}
	}
	if len(changed) > 0 {
		update += setBits(uint64(size), changed)
	}
	set := fingerprintSets((uint64(size)/2+1)<<width, f.class, keys, next)
	return rival{was.contains, width * 4 * size, (width - 1) * 4 * size, update, set}, nil
}

// A quotientSlot is the contents of a slot of a quotient filter: a remainder and its quotient.
type quotientSlot struct {
	quotient, remainder uint32
	full                bool
}

// quotientRival has sorted remainders in slots, each in its quotient's slot or after it. As in
// Pandey's filter of 2017, 2.125 bits a slot say to which quotients they belong.
func quotientRival(width int, keys, next []uint64) (rival, error) {
	slots := int(float64(len(keys)) / 0.95)
	fingerprint := func(key uint64) uint64 { return lab.High(lab.Mix64(key), uint64(slots)<<width) }
	layout := func(keys []uint64) []quotientSlot {
		var held []uint64
		for _, k := range keys {
			held = append(held, fingerprint(k))
		}
		slices.Sort(held)
		table := make([]quotientSlot, 0, slots+1000)
		for _, h := range slices.Compact(held) {
			q := uint32(h >> width)
			for len(table) < int(q) {
				table = append(table, quotientSlot{})
			}
			table = append(table, quotientSlot{q, uint32(h & (1<<width - 1)), true})
		}
		return table
	}
	was := layout(keys)
	contains := func(k uint64) bool {
		h := fingerprint(k)
		want := quotientSlot{uint32(h >> width), uint32(h & (1<<width - 1)), true}
		// A run begins at its quotient or after it. From there on, slots are in order until one
		// is empty.
		for i := int(want.quotient); i < len(was) && was[i].full; i++ {
			if c := cmp.Or(cmp.Compare(was[i].quotient, want.quotient), cmp.Compare(was[i].remainder, want.remainder)); c >= 0 {
				return c == 0
			}
		}
		return false
	}
	size := slots * (8*width + 17) / 8
	r := rival{contains: contains, memory: size, message: size, set: fingerprintSets(uint64(slots)<<width, fingerprint, keys, next)}
	if next == nil {
		return r, nil
	}
	is := layout(next)
	var changed []uint64
	for i := range max(len(was), len(is)) {
		var a, b quotientSlot
		if i < len(was) {
			a = was[i]
		}
		if i < len(is) {
			b = is[i]
		}
		if a != b {
			changed = append(changed, uint64(i))
		}
	}
	r.update = setBits(uint64(max(len(was), len(is))), changed) + len(changed)*(8*width+17)/8
	return r, nil
}
