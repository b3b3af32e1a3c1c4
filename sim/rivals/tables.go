package rivals

import (
	"cmp"
	"errors"
	"math/bits"
	"slices"

	"github.com/summarycache/summarycache/sim/lab"
)

// ribbonRival solves a band of equations. A key has a start and 64 bits, which select some of
// the 64 rows from the start on; the exclusive-or of these rows must be the key's fingerprint.
// The number of rows grows in steps of half a per cent until there is a solution.
func ribbonRival(width int, keys, _ []uint64) (rival, error) {
	const band = 64
	for over := 1.01; over < 1.5; over += 0.005 {
		rows := int(over*float64(len(keys))) + band
		row := func(key uint64) (start int, pick uint64) {
			h := lab.Mix64(key)
			return int(lab.High(h, uint64(rows-band+1))), lab.Mix64(h+lab.Golden64) | 1
		}
		pivots, values := make([]uint64, rows), make([]uint32, rows)
		solved := true
		for _, k := range keys {
			start, pick := row(k)
			value := fingerprintOf(k, width)
			// pick loses its lowest bit in each turn, so start grows, at most to the last row.
			for pick != 0 && pivots[start] != 0 {
				pick ^= pivots[start]
				value ^= values[start]
				if pick != 0 {
					shift := bits.TrailingZeros64(pick)
					start, pick = start+shift, pick>>shift
				}
			}
			if pick != 0 {
				pivots[start], values[start] = pick, value
			} else if value != 0 {
				solved = false
				break
			}
		}
		if !solved {
			continue
		}
		solution := make([]uint32, rows)
		sum := func(start int, pick uint64) (v uint32) {
			for ; pick != 0; pick &= pick - 1 {
				v ^= solution[start+bits.TrailingZeros64(pick)]
			}
			return v
		}
		for i := rows - 1; i >= 0; i-- {
			if pivots[i] != 0 {
				solution[i] = values[i] ^ sum(i, pivots[i]&^1)
			}
		}
		size := width * rows
		return rival{func(k uint64) bool { return sum(row(k)) == fingerprintOf(k, width) }, size, size, 0}, nil
	}
	return rival{}, errors.New("the equations have no solution")
}

// cuckooRival has buckets of four fingerprints. A lookup compares eight of these, so they are
// three bits wider than 1/f needs. In a message they are sorted within their bucket, which
// saves a bit each.
func cuckooRival(width int, keys, next []uint64) (rival, error) {
	width += 3
	size := int(float64(len(keys))/4/0.95) + 1
	f := lab.NewCuckooFilter(size, width)
	none := func(uint32) {}
	for _, k := range keys {
		f.Insert(k, none)
	}
	before := slices.Clone(f.Buckets)
	was := lab.CuckooFilter{Buckets: before, Spilled: f.Spilled, Width: width}
	if len(f.Spilled) > 0 {
		return rival{}, errors.New("the cuckoo table is too full")
	}
	for i := range next {
		if next[i] != keys[i] {
			f.Remove(keys[i], none)
			f.Insert(next[i], none)
		}
	}
	var changed []uint64
	update := 0
	for b := range before {
		old := before[b]
		came, left := 0, 0
		for _, fingerprint := range f.Buckets[b] {
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
		update += setBits(size, changed)
	}
	return rival{was.Contains, width * 4 * size, (width - 1) * 4 * size, update}, nil
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
	r := rival{contains: contains, memory: size, message: size}
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
	r.update = setBits(max(len(was), len(is)), changed) + len(changed)*(8*width+17)/8
	return r, nil
}
