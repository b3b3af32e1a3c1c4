package digest

import (
	"errors"
	"testing"
)

// TestAccept compares Accept with DecodeFilter, near every limit.
func TestAccept(t *testing.T) {
	for _, g := range []Geometry{{Bits: 20_000_000, Hashes: 1}, {Bits: 200_000, Hashes: 2}} {
		base := newFilter(g, Version{Epoch: 1}, 1, randomSet(g.Bits, 20_000, 1))
		base.version.State = base.state()
		message := base.AppendTo(nil)
		l := formFor(g.Bits, base.ones)
		memory := int(decodingBytes(&l, base.ones))
		for _, lim := range []Limits{
			{}, {Bits: g.Bits}, {Bits: g.Bits - 1},
			{Bytes: len(message) * 1002 / 1000}, {Bytes: len(message) * 998 / 1000},
			{Memory: memory}, {Memory: memory - 1},
		} {
			want := lim.Accept(g, base.ones)
			if _, err := DecodeFilter(message, lim); errors.Is(err, ErrTooLarge) != errors.Is(want, ErrTooLarge) {
				t.Errorf("%v, %+v: DecodeFilter = %v, Accept = %v", g, lim, err, want)
			}
		}
	}
}

// TestPlanOfTooMany: a plan that receivers refuse by default is an error; one for 3e7 keys at
// one false positive in a thousand is not.
func TestPlanOfTooMany(t *testing.T) {
	if _, err := Plan(Goal{Objects: 30_000_000, Peers: 2, FalseCandidates: 0.001}); err != nil {
		t.Errorf("thirty million keys: %v", err)
	}
	if _, err := Plan(Goal{Objects: 100_000_000, Peers: 2, FalseCandidates: 0.001}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a hundred million keys: %v, want ErrTooLarge", err)
	}
}

// TestLimitsAreInclusive: a message as long as the limit is read, and one byte more is refused, whatever its kind.
func TestLimitsAreInclusive(t *testing.T) {
	v := versions(t, Geometry{Bits: 1 << 20, Hashes: 1}, 1_000, 10, 2)
	d, err := Diff(v[0], v[1])
	if err != nil {
		t.Fatal(err)
	}
	delta, err := d.AppendTo(nil, v[0])
	if err != nil {
		t.Fatal(err)
	}
	bare, err := d.AppendBare(nil, v[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		b    []byte
		read func(b []byte, lim Limits) error
	}{
		"filter": {v[0].AppendTo(nil), func(b []byte, lim Limits) error { _, err := DecodeFilter(b, lim); return err }},
		"header": {v[0].AppendTo(nil), func(b []byte, lim Limits) error { _, err := Peek(b, lim); return err }},
		"delta":  {delta, func(b []byte, lim Limits) error { _, err := DecodeDelta(b, v[0], lim); return err }},
		"bare": {bare, func(b []byte, lim Limits) error {
			_, _, err := DecodeBare(b, v[0], v[1].Version().Sequence, v[1].Keys(), lim)
			return err
		}},
	} {
		for _, more := range []int{1, 0} {
			if err := c.read(c.b, Limits{Bytes: len(c.b) + more}); err != nil {
				t.Errorf("%s of %d bytes, limit %d: %v", name, len(c.b), len(c.b)+more, err)
			}
		}
		if err := c.read(c.b, Limits{Bytes: len(c.b) - 1}); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s of %d bytes, limit one less: %v, want ErrTooLarge", name, len(c.b), err)
		}
	}
}
