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
	table := job.Table(fmt.Sprintf("an older filter brought up to date, f = %g, one hash, n = %d, bytes", f, n),
		lab.Column{Name: "c", Head: "replaced, %", Format: "%g"},
		lab.Column{Name: "flips", Head: "positions that differ", Loose: lab.Exact},
		lab.Column{Name: "delta", Head: "delta, base known (ours)", Loose: lab.Exact},
		lab.Column{Name: "pinsketch", Head: "PinSketch", Loose: lab.Exact},
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
		table.Row(100*c, d.Len(), len(delta), (d.Len()*width+7)/8, len(next.AppendTo(nil)))
	}
	table.Note("PinSketch: %d bits for each position that differs, if their number is known beforehand; decoding takes time proportional to the square of that number.", width)
	return nil
}
