package digest

import (
	"errors"
	"slices"
	"testing"
)

func TestFollow(t *testing.T) {
	for _, g := range []Geometry{{Bits: 1 << 30, Hashes: 1, Seed: 5}, {Bits: 1 << 14, Hashes: 4, Seed: 5}} {
		keys := randomKeys(random(7), 2_000)
		before := counting(t, g, keys...)
		before.Advance()
		before.Remove(keys[0])
		b := before.Advance().AppendTo(nil)
		former, err := DecodeFilter(b, Limits{Seed: g.Seed})
		if err != nil {
			t.Fatal(err)
		}

		// The same contents, whatever was frozen of them on the way.
		again := counting(t, g, keys[1:900]...)
		again.Advance()
		for _, k := range keys[900:] {
			again.Add(k)
		}
		f, d, err := within(again).Follow(former)
		if err != nil || d.Len() != 0 || f != former || again.Current() != former || again.Changed() != 0 {
			t.Fatalf("the same contents: %v, %v, %v, want %v", f, d, err, former.Version())
		}
		again.Add(keys[0])
		next, d := again.AdvanceDelta()
		want := counting(t, g, keys...).Advance()
		if v := next.Version(); v != (Version{former.Version().Epoch, former.Version().Sequence + 1, want.Version().State}) || d.Base() != former.Version() {
			t.Errorf("the next version is %v, by a delta from %v", v, d.Base())
		}
		if got, err := d.Apply(former); err != nil || !slices.Equal(got.list(), want.list()) {
			t.Errorf("the delta after it gives another filter, %v", err)
		}

		// Other contents.
		other := counting(t, g, keys[100:]...)
		f, d, err = within(other).Follow(former)
		if err != nil || f.Version().Sequence != former.Version().Sequence+1 || f.Keys() != 1900 || other.Current() != f {
			t.Fatalf("other contents: %v, %v", f, err)
		}
		if got, err := d.Apply(former); err != nil || got.Version() != f.Version() || !slices.Equal(got.list(), counting(t, g, keys[100:]...).Advance().list()) {
			t.Errorf("the delta from the former version: %v", err)
		}

		g.Bits *= 2
		grown := counting(t, g, keys...)
		was := grown.Current()
		if _, _, err := within(grown).Follow(former); !errors.Is(err, ErrBase) || grown.Current() != was {
			t.Errorf("of another geometry: %v, want ErrBase", err)
		}
	}
}

// within returns what package gossip sees of a set with that filter.
func within(c *CountingFilter) inside { return inside{&Set{content: &content{filter: c}}} }
