package exchange

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/summarycache/summarycache/digest"
)

func FuzzMessage(f *testing.F) {
	v := readVectors(f)
	names := slices.Sorted(maps.Keys(codecs))
	add := func(message, text string) {
		b := unhex(f, text)
		for i, n := range names {
			if n != message {
				continue
			}
			f.Add(uint8(i), b)
			f.Add(uint8(i), b[:len(b)/2])
			for bit := 0; bit < 8*len(b); bit += 31 {
				c := append([]byte(nil), b...)
				c[bit/8] ^= 1 << (bit % 8)
				f.Add(uint8(i), c)
			}
		}
	}
	for _, c := range v.Valid {
		add(c.Message, c.Hex)
	}
	for _, c := range v.Invalid {
		add(c.Message, c.Hex)
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		name := names[int(which)%len(names)]
		_, again, err := codecs[name](b)
		if err != nil {
			if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrVersion) {
				t.Errorf("%s: decode(%x) = %v, which is no sentinel's", name, b, err)
			}
			return
		}
		switch name {
		case "hello", "welcome", "metadata", "refuse":
			// Trailing fields of later versions, unknown codes and unprintable text are dropped. The
			// rest must not change.
			_, third, err := codecs[name](again)
			if err != nil || string(third) != string(again) {
				t.Errorf("%s: %x decodes and encodes to %x, and that to %x, %v", name, b, again, third, err)
			}
		default:
			if string(again) != string(b) {
				t.Errorf("%s: %x decodes and encodes to %x", name, b, again)
			}
		}
	})
}

// FuzzAnswer decodes any bytes as the answer to a get. An answer that is accepted matches its head.
func FuzzAnswer(f *testing.F) {
	c, err := digest.NewCountingFilter(digest.Geometry{Bits: 1 << 12, Hashes: 1}, 1)
	if err != nil {
		f.Fatal(err)
	}
	for i := range 50 {
		c.Add(digest.Key(uint64(i) * 0x9e3779b97f4a7c15))
	}
	base := c.Advance()
	origin := New(Config{Name: "origin", Incarnation: 7}, time.Unix(0, 0))
	origin.Publish(time.Unix(0, 0), base, nil)
	ask := Fetch{Get: Get{Origin: IDOf("origin"), Have: origin.Self().Version, State: origin.Self().State, Limit: 1 << 20}, Base: base}
	c.Add(99)
	target, delta := c.AdvanceDelta()
	origin.Publish(time.Unix(1, 0), target, delta)
	for _, g := range []Get{ask.Get, {Origin: IDOf("origin"), Limit: 1 << 20}, {Origin: IDOf("other"), Limit: 1 << 20}} {
		frame := origin.HandleGet("x", g).AppendTo(nil)
		f.Add(frame[0], frame[FrameHeader:])
		f.Add(frame[0], frame[FrameHeader:FrameHeader+(len(frame)-FrameHeader)*3/4])
	}
	f.Add(uint8(FrameBusy), appendBusy(nil, time.Second)[FrameHeader:])
	lim := digest.Limits{Bytes: 1 << 16, Memory: 1 << 20}
	f.Fuzz(func(t *testing.T, typ uint8, b []byte) {
		r := DecodeAnswer(ask, FrameType(typ), b, lim)
		if r.Err != nil || r.Filter == nil {
			return
		}
		v := r.Filter.Version()
		if r.Head.Origin != ask.Get.Origin || r.Head.State != v.State || r.Head.Version.Sequence != v.Sequence || r.Head.Version.Epoch != v.Epoch {
			t.Errorf("accepted %v for %+v", v, r.Head)
		}
		if r.Delta != nil {
			if again, err := r.Delta.Apply(base); err != nil || again.Version() != v {
				t.Errorf("the delta gives %v, %v, not %v", again, err, v)
			}
		}
	})
}
