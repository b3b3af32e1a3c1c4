package digest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// versions returns successive versions of one cache that replaces a part of its
// n keys each time.
func versions(t testing.TB, g Geometry, n, replace, count int) []*Filter {
	r := random(uint64(n*replace) + g.Bits)
	keys := randomKeys(r, n)
	c := counting(t, g, keys...)
	out := []*Filter{c.Advance()}
	for len(out) < count {
		for range replace {
			i := r.IntN(len(keys))
			c.Remove(keys[i])
			keys[i] = Key(r.Uint64())
			c.Add(keys[i])
		}
		out = append(out, c.Advance())
	}
	return out
}

func TestDeltaRoundTrip(t *testing.T) {
	for _, g := range geometries[2:] {
		for _, replace := range []int{1, 30, 1_000} {
			t.Run(fmt.Sprintf("%v/replace=%d", g, replace), func(t *testing.T) {
				v := versions(t, g, 1_000, replace, 2)
				d, err := Diff(v[0], v[1])
				if err != nil {
					t.Fatal(err)
				}
				context := encode(t, d, v[0])
				if other := encode(t, d, v[1]); !slices.Equal(context, other) {
					t.Error("coded from the target, the delta has other bytes")
				}
				got, err := DecodeDelta(context, v[0], Limits{Seed: g.Seed})
				if err != nil {
					t.Fatalf("DecodeDelta = %v", err)
				}
				if !slices.Equal(got.flips, d.flips) || got.Base() != d.Base() || got.Target() != d.Target() {
					t.Error("the decoded delta differs")
				}
				f, err := got.Apply(v[0])
				if err != nil {
					t.Fatalf("Apply = %v", err)
				}
				equalFilters(t, f, v[1])
			})
		}
	}
}

func TestDeltaIsOnlyEncodedGivenItsBase(t *testing.T) {
	v := versions(t, Geometry{Bits: 1 << 20, Hashes: 1}, 1_000, 10, 3)
	d, _ := Diff(v[0], v[1])
	other := emptyFilter(Geometry{Bits: 1 << 20, Hashes: 2}, v[0].version.Epoch)
	other.version = v[0].version
	for name, base := range map[string]*Filter{"later": v[2], "other geometry": other, "none": nil} {
		if got, err := d.AppendTo([]byte("x"), base); !errors.Is(err, ErrBase) || string(got) != "x" {
			t.Errorf("%s: AppendTo = %x, %v, want ErrBase", name, got, err)
		}
	}
}

func TestDeltaOnlyAppliesToItsBase(t *testing.T) {
	v := versions(t, Geometry{Bits: 1 << 20, Hashes: 1}, 1_000, 10, 3)
	d, _ := Diff(v[0], v[1])
	b := encode(t, d, v[0])
	reborn := *v[0]
	reborn.version.Epoch++
	for name, base := range map[string]*Filter{"target": v[1], "later": v[2], "other epoch": &reborn} {
		if _, err := d.Apply(base); !errors.Is(err, ErrBase) {
			t.Errorf("%s: Apply = %v, want ErrBase", name, err)
		}
		if _, err := DecodeDelta(b, base, Limits{}); !errors.Is(err, ErrBase) {
			t.Errorf("%s: DecodeDelta = %v, want ErrBase", name, err)
		}
	}
	if _, err := DecodeDelta(b, nil, Limits{}); !errors.Is(err, ErrBase) {
		t.Errorf("DecodeDelta with no base = %v, want ErrBase", err)
	}
	lie := *d
	lie.target.State++
	if _, err := lie.Apply(v[0]); !errors.Is(err, ErrCorrupt) {
		t.Errorf("Apply to a wrong state = %v, want ErrCorrupt", err)
	}
	for _, pair := range [][2]*Filter{{v[1], v[0]}, {v[0], &reborn}} {
		if _, err := Diff(pair[0], pair[1]); !errors.Is(err, ErrBase) {
			t.Errorf("Diff(%v, %v) = %v, want ErrBase", pair[0].Version(), pair[1].Version(), err)
		}
	}
}

func TestCompose(t *testing.T) {
	for _, g := range []Geometry{geometries[3], geometries[7]} {
		v := versions(t, g, 300, 40, 9)
		for from := range v {
			var run *Delta
			for to := from + 1; to < len(v); to++ {
				step, err := Diff(v[to-1], v[to])
				if err != nil {
					t.Fatal(err)
				}
				if run == nil {
					run = step
				} else if run, err = run.compose(step); err != nil {
					t.Fatal(err)
				}
				direct, _ := Diff(v[from], v[to])
				if !slices.Equal(run.flips, direct.flips) {
					t.Fatalf("%d to %d: composed and direct deltas differ", from, to)
				}
				got, err := run.Apply(v[from])
				if err != nil {
					t.Fatal(err)
				}
				equalFilters(t, got, v[to])
			}
		}
		a, _ := Diff(v[0], v[1])
		b, _ := Diff(v[2], v[3])
		if _, err := a.compose(b); !errors.Is(err, ErrBase) {
			t.Errorf("compose over a gap = %v, want ErrBase", err)
		}
	}
}

func TestHistory(t *testing.T) {
	g := Geometry{Bits: 1 << 20, Hashes: 1}
	v := versions(t, g, 500, 20, 10)
	one, _ := Diff(v[0], v[1])
	h := NewHistory(one.bytes() * 11 / 2)
	if _, _, ok := h.Since(Version{}); ok || h.Current() != nil {
		t.Error("an empty history knows something")
	}
	for i, f := range v {
		h.Advance(f)
		h.Advance(f)
		if i > 0 {
			h.Advance(v[i-1]) // late, and ignored
		}
	}
	if h.Current() != v[9] || len(h.log) < 3 || len(h.log) > 7 {
		t.Errorf("Current %v, Len %d", h.Current().Version(), len(h.log))
	}
	for i, f := range v {
		d, base, ok := h.Since(f.Version())
		if want := i >= 9-len(h.log); ok != want {
			t.Errorf("Since version %d of 9 = %v with %d kept", i, ok, len(h.log))
		}
		if !ok {
			continue
		}
		equalFilters(t, base, f)
		got, err := DecodeDelta(encode(t, d, base), f, Limits{})
		if err != nil {
			t.Fatalf("Since version %d: %v", i, err)
		}
		applied, err := got.Apply(f)
		if err != nil {
			t.Fatal(err)
		}
		equalFilters(t, applied, v[9])
	}
	next := *v[9]
	next.version.Epoch++
	h.Advance(&next)
	if _, _, ok := h.Since(v[9].Version()); ok || h.Current() != &next || len(h.log) != 0 {
		t.Error("the history outlived its epoch")
	}
}

func TestHistoryTakesDeltas(t *testing.T) {
	c := counting(t, Geometry{Bits: 1 << 30, Hashes: 1})
	h := NewHistory(1 << 20)
	h.Advance(c.Current())
	start := c.Current().Version()
	for _, k := range randomKeys(random(1), 20) {
		c.Add(k)
		h.AdvanceDelta(c.AdvanceDelta())
	}
	d, base, ok := h.Since(start)
	if !ok || base.Ones() != 0 || d.Len() != 20 || len(h.log) != 20 {
		t.Fatalf("Since the start = %v, %v, %v", d, base, ok)
	}
}

// TestUndoneChanges: changes that were undone make a delta without flips, which leads from its
// base to a later sequence.
func TestUndoneChanges(t *testing.T) {
	for _, g := range []Geometry{geometries[3], geometries[7]} {
		keys := randomKeys(random(3), 301)
		c := counting(t, g, keys[:300]...)
		h := NewHistory(1 << 20)
		start := c.Advance()
		h.Advance(start)
		c.Add(keys[300])
		h.Advance(c.Advance())
		c.Remove(keys[300])
		end := c.Advance()
		h.Advance(end)
		d, base, ok := h.Since(start.Version())
		if !ok || d.Len() != 0 || d.Target() != end.Version() || end.Version().Sequence != start.Version().Sequence+2 {
			t.Fatalf("%v: Since(%v) = %v, %v", g, start.Version(), d, ok)
		}
		got, err := DecodeDelta(encode(t, d, base), start, Limits{Seed: g.Seed})
		if err != nil {
			t.Fatalf("%v: DecodeDelta = %v", g, err)
		}
		f, err := got.Apply(start)
		if err != nil {
			t.Fatalf("%v: Apply = %v", g, err)
		}
		equalFilters(t, f, end)
	}
}
