package digest

import (
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"testing"
)

func TestBareDelta(t *testing.T) {
	for _, g := range geometries {
		v := versions(t, g, 300, 20, 4)
		for from := range v {
			for to := from + 1; to < len(v); to++ {
				d, err := Diff(v[from], v[to])
				if err != nil || d.base == d.target {
					continue // nothing changed in so small a filter
				}
				b, err := d.AppendBare(nil, v[from])
				if err != nil {
					t.Fatal(err)
				}
				same, err := d.AppendBare(nil, v[to])
				if err != nil || !slices.Equal(b, same) {
					t.Fatalf("%v: with the target %x, %v, with the base %x", g, same, err, b)
				}
				if framed := len(encode(t, d, v[from])); len(b) > framed-26 {
					t.Errorf("%v: %d bytes bare, %d in a message", g, len(b), framed)
				}
				again, made, err := DecodeBare(b, v[from], v[to].Version().Sequence, v[to].Keys(), Limits{})
				if err != nil || again.Target() != v[to].Version() {
					t.Fatalf("%v: DecodeBare = %v, %v", g, again, err)
				}
				equalFilters(t, made, v[to])
				got, err := again.Apply(v[from])
				if err != nil {
					t.Fatal(err)
				}
				equalFilters(t, got, v[to])
			}
		}
	}
}

func TestBareDeltaRefuses(t *testing.T) {
	v := versions(t, Geometry{Bits: 1 << 20, Hashes: 1}, 1_000, 10, 3)
	d, _ := Diff(v[0], v[1])
	b, _ := d.AppendBare(nil, v[0])
	for name, f := range map[string]*Filter{"another filter": v[2], "none": nil} {
		if got, err := d.AppendBare([]byte("x"), f); !errors.Is(err, ErrBase) || string(got) != "x" {
			t.Errorf("AppendBare with %s = %x, %v, want ErrBase", name, got, err)
		}
	}
	if _, _, err := DecodeBare(b, v[0], v[0].Version().Sequence, 0, Limits{}); !errors.Is(err, ErrBase) {
		t.Errorf("to the base: %v, want ErrBase", err)
	}
	sequence := v[1].Version().Sequence
	for n := range b {
		// A code that ends early may be that of other positions.
		if cut, _, err := DecodeBare(b[:n], v[0], sequence, 0, Limits{}); err == nil && cut.Target().State == v[1].version.State ||
			err != nil && !errors.Is(err, ErrCorrupt) {
			t.Errorf("the first %d bytes: %v, want ErrCorrupt", n, err)
		}
	}
	if _, _, err := DecodeBare(append(slices.Clone(b), 0), v[0], sequence, 0, Limits{}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a byte too many: %v, want ErrCorrupt", err)
	}
	for _, name := range []string{"0f", "0f8000", "0fffffffffffffffffff01", "ff", "f0ff01"} {
		if _, _, err := DecodeBare(unhex(t, name), v[0], sequence, 0, Limits{}); !errors.Is(err, ErrCorrupt) {
			t.Errorf("counts of %s: %v, want ErrCorrupt", name, err)
		}
	}
	if _, _, err := DecodeBare(b, v[0], sequence, 0, Limits{Bytes: len(b) - 1}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("beyond the limit: %v, want ErrTooLarge", err)
	}
	// It may decode with another base of that epoch, but does not lead to the same state.
	if wrong, _, err := DecodeBare(b, v[2], 99, 0, Limits{}); err == nil && wrong.Target().State == v[1].version.State {
		t.Error("on another base it leads to the same state")
	}
}

// TestBareDeltaVector is the example of FORMAT.md, section 4.
func TestBareDeltaVector(t *testing.T) {
	g := Geometry{Bits: 1000, Hashes: 1}
	base := newFilter(g, Version{Epoch: 1, Sequence: 1}, 4, []uint64{10, 200, 500, 900})
	target := newFilter(g, Version{Epoch: 1, Sequence: 2}, 4, []uint64{10, 201, 500, 901})
	base.version.State, target.version.State = base.state(), target.state()
	d, err := Diff(base, target)
	if err != nil {
		t.Fatal(err)
	}
	const want = "2254a2c2"
	b, err := d.AppendBare(nil, base)
	if got := hex.EncodeToString(b); err != nil || got != want {
		t.Errorf("AppendBare = %s, %v, want %s", got, err, want)
	}
}

// TestSmallDeltas: at two to eight changes a bare delta is no longer than a list of as many hashes that
// give the same rate of false positives, sorted and coded as well as a list can be.
func TestSmallDeltas(t *testing.T) {
	const n = 100_000
	g, err := GeometryFor(n, 1e-3)
	if err != nil {
		t.Fatal(err)
	}
	r := random(9)
	keys := randomKeys(r, n)
	c := counting(t, g, keys...)
	base := c.Advance()
	for changes := 2; changes <= 8; changes++ {
		const rounds = 50
		ours, list := 0, 0.0
		for range rounds {
			for i := range changes {
				if i%2 == 0 {
					c.Add(Key(r.Uint64()))
				} else {
					at := r.IntN(len(keys))
					c.Remove(keys[at])
					keys[at] = Key(r.Uint64())
					c.Add(keys[at])
				}
			}
			f, d := c.AdvanceDelta()
			b, err := d.AppendBare(nil, base)
			if err != nil {
				t.Fatal(err)
			}
			ours += len(b)
			count, log := d.Len(), 0.0
			for i := range count {
				log += math.Log2(float64(g.Bits) / float64(i+1)) // log2 C(m, count)
			}
			list += 1 + math.Ceil((log+float64(count))/8) // how many, which, and whether each came or left
			base = f
		}
		t.Logf("%d changes: %.2f bytes, a list %.2f", changes, float64(ours)/rounds, list/rounds)
		if float64(ours) > list {
			t.Errorf("%d changes take %d bytes, as a list %.0f", changes, ours, list)
		}
	}
}

func FuzzBareDelta(f *testing.F) {
	for _, g := range []Geometry{{Bits: 1 << 12, Hashes: 2}, {Bits: 1 << 30, Hashes: 1}} {
		v := versions(f, g, 100, 10, 2)
		d, _ := Diff(v[0], v[1])
		b, _ := d.AppendBare(nil, v[0])
		f.Add(g.Bits > 1<<20, b)
		f.Add(g.Bits > 1<<20, b[:len(b)/2])
	}
	bases := map[bool]*Filter{
		false: versions(f, Geometry{Bits: 1 << 12, Hashes: 2}, 100, 10, 1)[0],
		true:  versions(f, Geometry{Bits: 1 << 30, Hashes: 1}, 100, 10, 1)[0],
	}
	f.Fuzz(func(t *testing.T, large bool, b []byte) {
		base := bases[large]
		d, made, err := DecodeBare(b, base, base.version.Sequence+1, 1, Limits{Bytes: 1 << 16, Memory: 1 << 20})
		if err != nil {
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrTooLarge) {
				t.Errorf("DecodeBare = %v, which wraps no documented error", err)
			}
			return
		}
		if !slices.IsSorted(d.flips) {
			t.Error("flips are not in order")
		}
		got, err := d.Apply(base)
		if err != nil {
			t.Fatalf("Apply = %v", err)
		}
		equalFilters(t, made, got)
	})
}
