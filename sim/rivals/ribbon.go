package rivals

import (
	"cmp"
	"errors"
	"math/bits"
	"slices"

	"github.com/summarycache/summarycache/sim/lab"
)

// A ribbon is a band of equations. A key has a start and 64 bits, which select some of the 64 rows
// from the start on; the exclusive-or of these rows must be the key's fingerprint.
type ribbon struct {
	seed   uint64
	pivots []uint64
	values []uint32
}

const band = 64

func newRibbon(rows int, seed uint64) *ribbon {
	return &ribbon{seed, make([]uint64, rows), make([]uint32, rows)}
}

func (r *ribbon) row(key uint64) (start int, pick uint64) {
	h := lab.Mix64(key ^ r.seed)
	return int(lab.High(h, uint64(len(r.pivots)-band+1))), lab.Mix64(h+lab.Golden64) | 1
}

// insert adds a key's equation. It returns the row that it took, or -1 if it follows from the
// others. It fails if it contradicts them.
func (r *ribbon) insert(key uint64, width int) (at int, ok bool) {
	at, pick := r.row(key)
	value := fingerprintOf(key, width)
	// pick loses its lowest bit in each turn, so at grows, at most to the last row.
	for r.pivots[at] != 0 {
		pick ^= r.pivots[at]
		value ^= r.values[at]
		if pick == 0 {
			return -1, value == 0
		}
		shift := bits.TrailingZeros64(pick)
		at, pick = at+shift, pick>>shift
	}
	r.pivots[at], r.values[at] = pick, value
	return at, true
}

// solve turns the values into the solution of the equations.
func (r *ribbon) solve() {
	for i := len(r.pivots) - 1; i >= 0; i-- {
		if r.pivots[i] != 0 {
			r.values[i] ^= r.sum(i, r.pivots[i]&^1)
		}
	}
}

func (r *ribbon) sum(start int, pick uint64) (v uint32) {
	for ; pick != 0; pick &= pick - 1 {
		v ^= r.values[start+bits.TrailingZeros64(pick)]
	}
	return v
}

func (r *ribbon) contains(key uint64, width int) bool {
	return r.sum(r.row(key)) == fingerprintOf(key, width)
}

// standardRibbon has as many rows as it needs: their number grows in steps of half a per cent until
// there is a solution.
func standardRibbon(width int, keys []uint64, seed uint64) (*ribbon, error) {
	for over := 1.01; over < 1.5; over += 0.005 {
		r := newRibbon(int(over*float64(len(keys)))+band, seed)
		if !slices.ContainsFunc(keys, func(k uint64) bool { _, ok := r.insert(k, width); return !ok }) {
			r.solve()
			return r, nil
		}
	}
	return nil, errors.New("the equations have no solution")
}

func ribbonRival(width int, keys, _ []uint64) (rival, error) {
	r, err := standardRibbon(width, keys, 0)
	if err != nil {
		return rival{}, err
	}
	size := width * len(r.pivots)
	return rival{contains: func(k uint64) bool { return r.contains(k, width) }, memory: size, message: size}, nil
}

// A bumped ribbon filter, BuRR (Dillinger, Hübschle-Schneider, Sanders and Walzer, SEA 2022), has
// fewer rows than keys. Of each bucket of starts, it inserts the keys from the last start to the
// first. If one does not fit, the keys below a threshold are bumped to the next layer. Two bits a
// bucket choose one of four thresholds. The last layer is a standard ribbon.
type bumped struct {
	*ribbon
	choices []uint8 // by bucket
}

const (
	bumpBucket = 128
	bumpRows   = 0.955 // rows a key
	bumpLayers = 4     // with the last
)

// bumpThresholds are the thresholds in starts from the bucket's first: keys before one are bumped.
var bumpThresholds = [4]int{0, 16, 44, bumpBucket}

func (b bumped) bumps(start int) bool {
	return start%bumpBucket < bumpThresholds[b.choices[start/bumpBucket]]
}

func newBumped(width int, keys []uint64, seed uint64) (b bumped, rest []uint64) {
	b.ribbon = newRibbon(int(bumpRows*float64(len(keys)))+band, seed)
	b.choices = make([]uint8, len(b.pivots)/bumpBucket+1)
	buckets := make([][]uint64, len(b.choices))
	start := func(k uint64) int { s, _ := b.row(k); return s }
	for _, k := range keys {
		at := start(k) / bumpBucket
		buckets[at] = append(buckets[at], k)
	}
	for i, bucket := range buckets {
		slices.SortFunc(bucket, func(a, b uint64) int { return cmp.Compare(start(b), start(a)) })
		rows := make([]int, len(bucket)) // that the keys took
		for j, k := range bucket {
			var ok bool
			if rows[j], ok = b.insert(k, width); ok {
				continue
			}
			for bumpThresholds[b.choices[i]] <= start(k)%bumpBucket {
				b.choices[i]++
			}
			// Those that were inserted last have the lowest starts.
			for ; j > 0 && b.bumps(start(bucket[j-1])); j-- {
				if at := rows[j-1]; at >= 0 {
					b.pivots[at], b.values[at] = 0, 0
				}
			}
			rest = append(rest, bucket[j:]...)
			break
		}
	}
	b.solve()
	return b, rest
}

func bumpedRival(width int, keys, _ []uint64) (rival, error) {
	var layers []bumped
	size := 0
	for rest := keys; ; {
		seed := uint64(len(layers)) * lab.Golden64
		if len(layers) < bumpLayers-1 {
			var b bumped
			b, rest = newBumped(width, rest, seed)
			layers = append(layers, b)
			size += width*len(b.pivots) + 2*len(b.choices)
			continue
		}
		last, err := standardRibbon(width, rest, seed)
		if err != nil {
			return rival{}, err
		}
		size += width * len(last.pivots)
		contains := func(k uint64) bool {
			for _, b := range layers {
				if start, pick := b.row(k); !b.bumps(start) {
					return b.sum(start, pick) == fingerprintOf(k, width)
				}
			}
			return last.contains(k, width)
		}
		return rival{contains: contains, memory: size, message: size}, nil
	}
}
