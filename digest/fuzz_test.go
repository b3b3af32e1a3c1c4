package digest

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"
)

// fuzzLimits keep a fuzzing process small.
var fuzzLimits = Limits{Bytes: 1 << 16, Memory: 1 << 22}

func fuzzSeeds(f *testing.F) {
	for _, g := range geometries {
		v := versions(f, g, 20, 3, 2)
		d, err := Diff(v[0], v[1])
		if err != nil {
			f.Fatal(err)
		}
		for _, b := range [][]byte{v[0].AppendTo(nil), v[0].AppendPieces(nil, 20), encode(f, d, v[0])} {
			f.Add(b)
			f.Add(b[:len(b)/2])
			flipped := slices.Clone(b)
			flipped[len(flipped)/2] ^= 0x10
			f.Add(flipped)
		}
	}
}

// checkError checks that a decoder's error wraps one of the documented ones.
func checkError(t *testing.T, err error) {
	t.Helper()
	var format *FormatError
	if !errors.As(err, &format) {
		t.Fatalf("%v is not a FormatError", err)
	}
	for _, sentinel := range []error{ErrVersion, ErrTooLarge, ErrCorrupt, ErrBase, ErrSeed} {
		if errors.Is(err, sentinel) {
			return
		}
	}
	t.Fatalf("%v wraps no documented error", err)
}

// FuzzDecode: any bytes are refused with a documented error, or are a filter that can be
// encoded again. The checksum is corrected first; otherwise nearly all inputs would fail there.
func FuzzDecode(f *testing.F) {
	fuzzSeeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > checksumBytes {
			b = reseal(b)
		}
		_ = Dump(io.Discard, b)
		if at, err := OpenFilter(bytes.NewReader(b), nil, fuzzLimits); err == nil {
			if _, err := at.MayContain(Key(len(b))); err != nil {
				checkError(t, err)
			}
		} else {
			checkError(t, err)
		}
		filter, err := DecodeFilter(b, fuzzLimits)
		if err != nil {
			checkError(t, err)
			return
		}
		again := filter.AppendTo(nil)
		second, err := DecodeFilter(again, Limits{})
		if err != nil {
			t.Fatalf("what was decoded encodes to %x: %v", again, err)
		}
		equalFilters(t, second, filter)
		if len(again) > len(b) && Kind(b[4]) == KindFilter {
			t.Fatalf("%d bytes became %d", len(b), len(again))
		}
		if at, err := OpenFilter(bytes.NewReader(b), nil, fuzzLimits); err == nil {
			if spans := filter.appendSpans(nil, at.head.span); len(spans) > len(b) {
				t.Fatalf("%x in the same pieces is %x", b, spans)
			}
			for p := range filter.all() {
				if yes, err := at.contains(p); !yes || err != nil {
					t.Fatalf("position %d: %v, %v", p, yes, err)
				}
			}
		} else if Kind(b[4]) == KindPieces {
			t.Fatalf("decoded as a whole, but lookups fail: %v", err)
		}
		if h, err := Peek(b, fuzzLimits); err != nil || h.Version != filter.Version() {
			t.Fatalf("Peek = %v, %v", h, err)
		}
	})
}

// FuzzDelta: the same for deltas, with a base that fits the header and one that does not.
func FuzzDelta(f *testing.F) {
	fuzzSeeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > checksumBytes {
			b = reseal(b)
		}
		h, err := Peek(b, fuzzLimits)
		if err != nil {
			checkError(t, err)
			return
		}
		for _, base := range []*Filter{fittingBase(h), emptyFilter(geometries[2], 1)} {
			d, err := DecodeDelta(b, base, fuzzLimits)
			if err != nil {
				checkError(t, err)
				continue
			}
			coded, err := d.AppendTo(nil, base)
			if err != nil {
				t.Fatalf("AppendTo = %v", err)
			}
			again, err := DecodeDelta(coded, base, Limits{})
			if err != nil || !slices.Equal(again.flips, d.flips) || again.target != d.target {
				t.Fatalf("encoded again: %v, %v", again, err)
			}
			if target, err := d.Apply(base); err == nil {
				// The base's positions are invented, and do not have its state.
				if back, err := Diff(base, target); err != nil || !slices.Equal(back.flips, d.flips) {
					t.Fatalf("Diff of what Apply made = %v, %v", back, err)
				}
			} else if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("Apply = %v", err)
			}
		}
	})
}

// fittingBase makes a filter to which a delta with this header may apply. Its positions are invented.
func fittingBase(h Header) *Filter {
	g := geometries[h.Base.State%uint64(len(geometries))]
	return newFilter(g, h.Base, 0, randomSet(g.Bits, int(min(g.Bits/2, h.Base.State>>8%(1<<10))), h.Base.State))
}

// FuzzRoundTrip: any history of additions, removals and freezes can be sent as deltas, with and
// without context, and as snapshots.
func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte("any history of additions, removals and freezes"), uint8(3))
	f.Add(bytes.Repeat([]byte{0, 1, 2, 3, 200, 250}, 40), uint8(9))
	f.Fuzz(func(t *testing.T, ops []byte, which uint8) {
		c := counting(t, geometries[int(which)%len(geometries)])
		replica, log := c.Current(), NewHistory(1<<14)
		log.Advance(replica)
		for i, op := range ops {
			k := Key(mix(uint64(op % 64)))
			if op < 128 {
				c.Add(k)
			} else {
				c.Remove(k)
			}
			if i%16 != 15 {
				continue
			}
			f, d := c.AdvanceDelta()
			log.AdvanceDelta(f, d)
			if since, base, ok := log.Since(replica.Version()); ok {
				equalFilters(t, base, replica)
				got, err := DecodeDelta(encode(t, since, base), replica, Limits{})
				if err != nil {
					t.Fatal(err)
				}
				if replica, err = got.Apply(replica); err != nil {
					t.Fatal(err)
				}
			} else {
				var err error
				if replica, err = DecodeFilter(f.AppendTo(nil), Limits{}); err != nil {
					t.Fatal(err)
				}
			}
			equalFilters(t, replica, f)
		}
	})
}
