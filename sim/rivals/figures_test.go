package rivals

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/summarycache/summarycache/sim/lab"
)

// TestStructuresFigure: the figure shows what was counted, at the rate of the chapter.
func TestStructuresFigure(t *testing.T) {
	job := lab.Quiet(1)
	drawn, err := structuresFigure(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	keys, _ := rivalSets(job.Rand(31), structureKeys, structureKeys*rivalShare)
	above := func(c lab.Curve) float64 { // at the point that is nearest to the chapter's rate
		return slices.MinFunc(c.Points, func(p, q lab.Point) int {
			return cmp.Compare(math.Abs(math.Log(p.X/rateOf(rivalBits))), math.Abs(math.Log(q.X/rateOf(rivalBits))))
		}).Y
	}
	compared := 0
	for _, c := range drawn.Curves {
		for _, r := range rivals {
			if r.name != c.Name {
				continue
			}
			compared++
			if built, err := r.build(rivalBits, keys, nil); err != nil || math.Abs(above(c)+rivalBits-float64(built.message)/structureKeys) > 0.05 {
				t.Errorf("%s: %v above the bound at f = 2^-13, as a message %v in all: %v", c.Name, above(c), float64(built.message)/structureKeys, err)
			}
		}
	}
	if compared < 5 {
		t.Errorf("%d curves were compared", compared)
	}
}
