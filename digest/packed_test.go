package digest

import (
	"encoding/hex"
	"errors"
	"slices"
	"testing"
)

// TestPackedDelta encodes and decodes small deltas of every kind of filter. With up to six
// positions they are no longer than bare ones.
func TestPackedDelta(t *testing.T) {
	packed := 0
	for _, g := range geometries {
		for _, changes := range []int{1, 3, 12} {
			v := versions(t, g, 300, changes, 4)
			for i := 1; i < len(v); i++ {
				d, err := Diff(v[i-1], v[i])
				if err != nil {
					t.Fatal(err)
				}
				b, err := d.AppendPacked(nil, v[i-1])
				if sets, clears := d.ranks(v[i-1]); max(len(sets), len(clears)) > 15 || d.Len() == 0 {
					if !errors.Is(err, ErrTooLarge) || b != nil {
						t.Errorf("%v: AppendPacked of %d positions = %x, %v, want ErrTooLarge", g, d.Len(), b, err)
					}
					continue
				}
				same, err2 := d.AppendPacked(nil, v[i])
				if err != nil || err2 != nil || !slices.Equal(b, same) {
					t.Fatalf("%v: with the target %x, %v, with the base %x, %v", g, same, err2, b, err)
				}
				packed++
				if bare, _ := d.AppendBare(nil, v[i-1]); d.Len() <= 6 && len(b) > len(bare) {
					t.Errorf("%v: %d positions in %d bytes packed, %d bare", g, d.Len(), len(b), len(bare))
				}
				again, made, err := DecodePacked(b, v[i-1], v[i].version.Sequence, v[i].Keys())
				if err != nil {
					t.Fatalf("%v: DecodePacked(%x) = %v", g, b, err)
				}
				got, err := again.Apply(v[i-1])
				if err != nil {
					t.Fatal(err)
				}
				equalFilters(t, got, v[i])
				equalFilters(t, made, v[i])
			}
		}
	}
	if packed < 20 {
		t.Errorf("only %d deltas were packed", packed)
	}
}

// packedExample are the filters of the example of FORMAT.md, section 4.
func packedExample(t testing.TB) (base *Filter, d *Delta) {
	g := Geometry{Bits: 1000, Hashes: 1}
	base = newFilter(g, Version{Epoch: 1, Sequence: 1}, 4, []uint64{10, 200, 500, 900})
	target := newFilter(g, Version{Epoch: 1, Sequence: 2}, 4, []uint64{10, 201, 500, 901})
	base.version.State, target.version.State = base.state(), target.state()
	d, err := Diff(base, target)
	if err != nil {
		t.Fatal(err)
	}
	return base, d
}

func TestPackedDeltaVectors(t *testing.T) {
	base, d := packedExample(t)
	const want = "22c704de"
	b, err := d.AppendPacked(nil, base)
	if got := hex.EncodeToString(b); err != nil || got != want {
		t.Errorf("AppendPacked = %s, %v, want %s", got, err, want)
	}
	if _, err := d.AppendPacked(nil, nil); !errors.Is(err, ErrBase) {
		t.Errorf("AppendPacked without a base = %v, want ErrBase", err)
	}
	for _, sequence := range []uint64{0, 1} {
		if _, _, err := DecodePacked(b, base, sequence, 4); !errors.Is(err, ErrBase) {
			t.Errorf("to sequence %d: %v, want ErrBase", sequence, err)
		}
	}
	for name, tc := range map[string]struct{ hex, field string }{
		"nothing":                      {"", "counts"},
		"no positions":                 {"00", "counts"},
		"five of four cleared":         {"50ff03", "counts"},
		"cut short":                    {"22c704", "positions set"},
		"a byte too many":              {"22c704de00", "end"},
		"rank 996 of 996":              {"01e403", "positions set"},
		"one rank twice":               {"02c71c03", "positions set"},
		"descending":                   {"2007", "positions cleared"},
		"a bit behind the last":        {"01c704", "padding"},
		"a bit behind what is cleared": {"1005", "padding"},
	} {
		b, err := hex.DecodeString(tc.hex)
		if err != nil {
			t.Fatal(err)
		}
		var format *FormatError
		if _, _, err := DecodePacked(b, base, 2, 4); !errors.Is(err, ErrCorrupt) || !errors.As(err, &format) || format.Field != tc.field {
			t.Errorf("%s: DecodePacked(%s) = %v, want ErrCorrupt for %q", name, tc.hex, err, tc.field)
		}
	}
}

func FuzzPackedDelta(f *testing.F) {
	base, d := packedExample(f)
	b, _ := d.AppendPacked(nil, base)
	f.Add(b)
	f.Add(b[:3])
	f.Fuzz(func(t *testing.T, b []byte) {
		d, made, err := DecodePacked(b, base, 2, 4)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Errorf("DecodePacked = %v, which wraps no documented error", err)
			}
			return
		}
		got, err := d.Apply(base)
		if err != nil {
			t.Fatalf("Apply = %v", err)
		}
		equalFilters(t, made, got)
		if again, err := d.AppendPacked(nil, base); err != nil || !slices.Equal(again, b) {
			t.Errorf("%x is read, and written as %x, %v", b, again, err)
		}
	})
}
