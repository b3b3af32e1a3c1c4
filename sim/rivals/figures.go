package rivals

import (
	"context"
	"fmt"
	"math"

	"github.com/summarycache/summarycache/sim/lab"
)

// structuresFigure shows how far today's structures are above the bound.
func structuresFigure(_ context.Context, job *lab.Job) (lab.Figure, error) {
	x := lab.Axis{Label: "false-positive probability f", Min: 1e-5, Max: 0.1, Log: true, Percent: true}
	y := lab.Axis{Label: "bits sent per key above log2 1/f", Min: 0, Max: 8}
	keys, _ := rivalSets(job.Rand(31), structureKeys, structureKeys*rivalShare)
	ribbon, err := ribbonRival(rivalBits, keys, nil)
	if err != nil {
		return lab.Figure{}, fmt.Errorf("ribbon: %w", err)
	}
	bumped, err := bumpedRival(rivalBits, keys, nil)
	if err != nil {
		return lab.Figure{}, fmt.Errorf("bumped ribbon: %w", err)
	}
	above := func(bits func(f float64) float64) []lab.Point {
		return x.Sample(200, x.Min, x.Max, func(f float64) float64 { return bits(f) - math.Log2(1/f) })
	}
	// slots returns the size of a structure of fingerprints with so many slots a key.
	slots := func(slots, extra float64) []lab.Point {
		return above(func(f float64) float64 { return (math.Log2(1/f) + extra) * slots / structureKeys })
	}
	return lab.Figure{
		File:  "structures",
		Title: "Bits above the bound against false positives",
		X:     x.Decades(), Y: y.Every(1),
		Curves: []lab.Curve{
			{Name: "bumped ribbon filter (BuRR), 64 wide", Points: slots(float64(bumped.message)/rivalBits, 0)},
			{Name: "ribbon filter, 64 wide", Points: slots(float64(ribbon.message)/rivalBits, 0)},
			{Name: "binary fuse filter, 4 places", Points: slots(float64(fuse4Shape(structureKeys).slots()), 0)},
			{Name: "one hash, m = n/f, compressed (ours)", Points: above(func(f float64) float64 { return lab.SentBits(lab.ArrayAt(f, 1), 1) })},
			{Name: "cuckoo filter, 4 slots, 95 % full", Points: slots(structureKeys/0.95, 2)},
			{Name: "quotient filter, 95 % full", Points: slots(structureKeys/0.95, 2.125)},
			{Name: "Bloom filter, best whole k", Points: above(lab.BloomBits)},
		},
	}, nil
}
