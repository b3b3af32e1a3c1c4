package rivals

import (
	"context"
	"fmt"
	"math"
	"math/bits"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/sim/lab"
)

// reconciliation compares the bytes that different methods send to a receiver that has an older
// filter. Ours must know which filter that is; the others need not.
func reconciliation(ctx context.Context, job *lab.Job) error {
	const n, f = 100_000, 1e-3
	const checkBits, countBits = 32, 4 // bits of a symbol of a rateless IBLT, in addition to its sum
	table := job.Table(fmt.Sprintf("an older filter brought up to date, f = %g, one hash, n = %d, bytes", f, n),
		lab.Column{Name: "c", Head: "replaced, %", Format: "%g"},
		lab.Column{Name: "flips", Head: "positions that differ", Loose: lab.Exact},
		lab.Column{Name: "delta", Head: "delta, base known (ours)", Loose: lab.Exact},
		lab.Column{Name: "pinsketch", Head: "PinSketch", Loose: lab.Exact},
		lab.Column{Name: "symbols", Head: "rateless IBLT, symbols a difference", Format: "%.3f", Loose: lab.Exact},
		lab.Column{Name: "riblt", Head: "bytes", Loose: lab.Exact},
		lab.Column{Name: "snapshot", Loose: lab.Exact})
	g := digest.Geometry{Bits: n * 1000, Hashes: 1}
	width := bits.Len64(g.Bits)
	for i, c := range []float64{0.001, 0.01, 0.05, 0.1, 0.2, 0.3} {
		if err := ctx.Err(); err != nil {
			return err
		}
		rng := job.Rand(40 + uint64(i))
		held, keys, base, err := lab.Filled(g, rng, n)
		if err != nil {
			return err
		}
		lab.ReplaceKeys(held, rng, keys[:int(math.Round(c*n))])
		next, d := held.AdvanceDelta()
		delta, err := d.AppendTo(nil, base)
		if err != nil {
			return err
		}
		symbols := ratelessSymbols(d.AppendPositions(nil))
		table.Row(100*c, d.Len(), len(delta), (d.Len()*width+7)/8,
			lab.Round(float64(symbols)/float64(d.Len()), 6), (symbols*(width+checkBits+countBits)+7)/8, len(next.AppendTo(nil)))
	}
	table.Note("PinSketch: %d bits for each position that differs, if their number is known beforehand; decoding takes time proportional to the square of that number. Rateless IBLT: symbols of %d bits until all is decoded, counted on the positions that differ.",
		width, width+checkBits+countBits)
	return nil
}

// ratelessSymbols returns how many symbols of a rateless invertible Bloom lookup table (Yang,
// Gilad and Alizadeh, 2024) are needed to decode a difference. Symbols are linear, so the
// elements that both sides have cancel out. A symbol is decoded when all except one of its
// elements are known.
func ratelessSymbols(difference []uint64) int {
	const most = 20 // symbols an element, far more than it takes
	limit := most*len(difference) + 64
	in := make([][]int32, limit) // elements of a symbol
	of := make([][]int32, len(difference))
	for e, x := range difference {
		// Element x is in symbol 0, and in symbol i with probability 1/(1+i/2). Its next symbol
		// is drawn by inverting the probability that none comes before it.
		state := lab.Mix64(x + lab.Golden64)
		for at := 0; at < limit; {
			in[at] = append(in[at], int32(e))
			of[e] = append(of[e], int32(at))
			state = lab.Mix64(state + lab.Golden64)
			u := (float64(state>>11) + 0.5) / (1 << 53)
			at += int(math.Ceil((float64(at) + 1.5) * (1/math.Sqrt(u) - 1)))
			if at < 0 { // beyond all symbols
				break
			}
		}
	}
	known := make([]bool, len(difference))
	open := make([]int, limit) // elements not known yet
	found := 0
	for i := range limit {
		for _, e := range in[i] {
			if !known[e] {
				open[i]++
			}
		}
		// Each turn takes a symbol, and one is added only when an element becomes known, so
		// this ends.
		for ready := []int{i}; len(ready) > 0; {
			s := ready[len(ready)-1]
			ready = ready[:len(ready)-1]
			if open[s] != 1 {
				continue
			}
			for _, e := range in[s] {
				if known[e] {
					continue
				}
				known[e] = true
				found++
				for _, other := range of[e] {
					if int(other) > i {
						break
					}
					if open[other]--; open[other] == 1 {
						ready = append(ready, int(other))
					}
				}
			}
		}
		if found == len(difference) {
			return i + 1
		}
	}
	return limit
}
