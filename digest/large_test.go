package digest

import (
	"errors"
	"flag"
	"slices"
	"testing"

	"github.com/summarycache/summarycache/sim/cputime"
)

var large = flag.Bool("large", false, "decode a filter of thirty million keys")

// TestLargeFilterIsRead: thirty million keys are read within the default limits, and in
// little more memory than the filter takes. By default there are a tenth of them, and
// a tenth of the memory.
func TestLargeFilterIsRead(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("one goroutine that decodes")
	}
	n, lim := 3_000_000, Limits{Memory: 256 << 20 / 10, Bytes: 64 << 20 / 10}
	if *large {
		n, lim = 30_000_000, Limits{}
	}
	base, _ := deltaChain(t, n, 1, 0)
	message := base.AppendTo(nil)
	var f *Filter
	taken := allocated(1, func() {
		var err error
		if f, err = DecodeFilter(message, lim); err != nil {
			t.Fatal(err)
		}
	})
	if most := uint64(base.MemoryBytes()) + 8<<20; taken > most {
		t.Errorf("decoding took %d bytes, for a filter of %d", taken, base.MemoryBytes())
	}
	equalFilters(t, f, base)
}

// TestCrowdedPieces: positions that are all in one piece are read, changed and found like
// others, in time that is linear in their number.
func TestCrowdedPieces(t *testing.T) {
	const n = 400_000
	g := Geometry{Bits: maxBits, Hashes: 1}
	positions := make([]uint64, n)
	for i := range positions {
		positions[i] = 1<<30 + 3*uint64(i)
	}
	base := newFilter(g, Version{Epoch: 1}, n, positions)
	base.version.State = base.state()
	if span := base.span(); span < 3*n {
		t.Fatalf("a piece of %d positions is too short for this test", span)
	}
	f, err := DecodeFilter(base.AppendTo(nil), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	equalFilters(t, f, base)
	changed := slices.Clone(positions)
	for i := range changed {
		changed[i] += uint64(i % 2)
	}
	target := newFilter(g, Version{Epoch: 1, Sequence: 1}, n, changed)
	target.version.State = target.state()
	d, err := Diff(base, target)
	if err != nil || d.Len() != n {
		t.Fatalf("Diff finds %d flips, want %d: %v", d.Len(), n, err)
	}
	message := encode(t, d, base)
	begin := cputime.Used()
	got, err := DecodeDelta(message, base, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if f, err = got.Apply(base); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d flips in one piece of %d: %v", n, n, cputime.Used()-begin)
	equalFilters(t, f, target)
	if _, err := DecodeDelta(message, target, Limits{}); !errors.Is(err, ErrBase) {
		t.Errorf("another base is accepted: %v", err)
	}
}
