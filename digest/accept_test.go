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

// TestAcceptOfMany: Accept says how many keys a set can be planned for.
func TestAcceptOfMany(t *testing.T) {
	for _, c := range []struct {
		keys uint64
		rate float64
		lim  Limits
		want error
	}{
		{30_000_000, 0.001, Limits{}, nil},
		{47_000_000, 0.001, Limits{}, nil},
		{47_100_000, 0.001, Limits{}, ErrTooLarge},
		{60_000_000, 0.001, Limits{}, ErrTooLarge},
		{100_000_000, 0.001, Limits{}, ErrTooLarge},
		{60_000_000, 0.001, Limits{Bytes: 128 << 20, Memory: 512 << 20}, nil},
		{60_000_000, 0.02, Limits{}, nil},
		{47_000_000, 1e-6, Limits{}, ErrTooLarge},
	} {
		s, err := PlanSet(c.keys, c.rate, Opaque, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		g := s.Geometry()
		fill, _ := g.predict(c.keys)
		if err := c.lim.Accept(g, uint64(fill*float64(g.Bits))); !errors.Is(err, c.want) {
			t.Errorf("%+v.Accept(PlanSet(%d, %v)) = %v, want %v", c.lim, c.keys, c.rate, err, c.want)
		}
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
