package digest

import (
	"errors"
	"math"
	"runtime"
	"slices"
	"testing"
)

func TestFilterRoundTrip(t *testing.T) {
	for _, g := range geometries {
		for _, n := range []int{0, 1, 1_000} {
			g.Seed = 77
			f := counting(t, g, randomKeys(random(uint64(n)), n)...).Advance()
			b := f.AppendTo([]byte("before"))[6:]
			got, err := DecodeFilter(b, Limits{Seed: 77})
			if err != nil {
				t.Fatalf("%v, %d keys: DecodeFilter = %v", g, n, err)
			}
			equalFilters(t, got, f)
			if got.Geometry() != f.Geometry() {
				t.Errorf("geometry %+v, want %+v", got.Geometry(), f.Geometry())
			}
			if again := got.AppendTo(nil); !slices.Equal(again, b) {
				t.Errorf("%v, %d keys: other bytes the second time", g, n)
			}
			stranger, err := DecodeFilter(b, Limits{})
			if err != nil || !slices.Equal(stranger.AppendTo(nil), b) {
				t.Errorf("without the seed: %v", err)
			}
			h, err := Peek(b, Limits{})
			if err != nil || h.Kind != KindFilter || h.Version != f.Version() || h.Ones != f.Ones() || h.Keys != uint64(n) {
				t.Errorf("Peek = %+v, %v", h, err)
			}
			if _, err := DecodeFilter(b, Limits{Seed: 78}); !errors.Is(err, ErrSeed) {
				t.Errorf("DecodeFilter under another seed = %v", err)
			}
		}
	}
}

// reseal gives an altered message a correct checksum.
func reseal(b []byte) []byte {
	b = b[:len(b)-checksumBytes]
	return seal(b, 0)
}

func TestDecodeRefuses(t *testing.T) {
	f := counting(t, Geometry{Bits: maxBits, Hashes: 1}, randomKeys(random(1), 50)...).Advance()
	good := f.AppendTo(nil)
	change := func(at int, to byte) []byte {
		b := slices.Clone(good)
		b[at] = to
		return reseal(b)
	}
	for _, c := range []struct {
		name  string
		b     []byte
		lim   Limits
		field string
		err   error
	}{
		{"nothing", nil, Limits{}, "magic", ErrCorrupt},
		{"other magic", change(0, 'X'), Limits{}, "magic", ErrCorrupt},
		{"later version", change(3, 2), Limits{}, "format version", ErrVersion},
		{"no kind", change(4, 0), Limits{}, "kind", ErrCorrupt},
		{"later kind", change(4, 9), Limits{}, "kind", ErrVersion},
		{"delta", change(4, 2), Limits{}, "", ErrCorrupt},
		{"extension beyond the end", reseal(slices.Concat(good[:5], []byte{255}, make([]byte, 200))), Limits{}, "extension", ErrCorrupt},
		{"no scheme", change(6, 0), Limits{}, "scheme", ErrCorrupt},
		{"later scheme", change(6, 200), Limits{}, "scheme", ErrVersion},
		{"no hashes", change(7, 0), Limits{}, "hashes", ErrCorrupt},
		{"many hashes", change(7, 33), Limits{}, "hashes", ErrCorrupt},
		{"another profile", change(8, 1), Limits{}, "profile", ErrSeed},
		{"another profile here", good, Limits{Profile: HTTP}, "profile", ErrSeed},
		{"state of another profile", change(8, 1), Limits{Profile: AnyProfile}, "state", ErrCorrupt},
		{"seed", good, Limits{Seed: 5}, "seed tag", ErrSeed},
		{"long message", good, Limits{Bytes: len(good) - 1}, "message", ErrTooLarge},
		{"many bits", good, Limits{Bits: maxBits - 1}, "bits", ErrTooLarge},
		{"much memory", good, Limits{Memory: 100}, "count", ErrTooLarge},
		{"flipped bit", append(slices.Clone(good[:20]), append([]byte{good[20] ^ 1}, good[21:]...)...), Limits{}, "checksum", ErrCorrupt},
		{"trailing byte", reseal(append(slices.Clone(good), 0)), Limits{}, "", ErrCorrupt},
	} {
		_, err := DecodeFilter(c.b, c.lim)
		var format *FormatError
		if !errors.Is(err, c.err) || !errors.As(err, &format) || c.field != "" && format.Field != c.field {
			t.Errorf("%s: DecodeFilter = %v, want %v in %q", c.name, err, c.err, c.field)
		}
	}
	for n := range good {
		if _, err := DecodeFilter(good[:n], Limits{}); !errors.Is(err, ErrCorrupt) {
			t.Errorf("first %d bytes: DecodeFilter = %v", n, err)
		}
	}
}

// claims returns a message with a correct checksum and this payload, whose header claims a
// filter of count positions in m bits.
func claims(m, count uint64, payload []byte) []byte {
	b := appendHeader(nil, Header{
		Kind:     KindFilter,
		Geometry: Geometry{Bits: m, Hashes: 1},
		Version:  Version{Epoch: 1, Sequence: 1},
		Ones:     count,
	})
	return seal(append(b, payload...), 0)
}

func TestDecodeAllocatesLittleForLies(t *testing.T) {
	for name, b := range map[string][]byte{
		"positions without bytes":  claims(1<<40, 1<<24, nil),
		"a dense set of one byte":  claims(1<<28, 1<<27, []byte{1}),
		"beyond the memory":        claims(1<<40, 1<<29, make([]byte, 100)),
		"a coded set of few bytes": claims(1<<40, 1<<24, make([]byte, 100)),
		"a bitmap too large":       claims(1<<40, 1<<39, make([]byte, 100)),
	} {
		got := allocated(10, func() {
			if _, err := DecodeFilter(b, Limits{}); err == nil {
				t.Errorf("%s: accepted", name)
			}
		})
		if got > 4096 {
			t.Errorf("%s: %d bytes allocated", name, got)
		}
	}
}

// TestExtension: fields that a later program adds in the extension are skipped.
func TestExtension(t *testing.T) {
	v := versions(t, Geometry{Bits: 1 << 20, Hashes: 1}, 300, 3, 2)
	d, err := Diff(v[0], v[1])
	if err != nil {
		t.Fatal(err)
	}
	extended := func(b []byte) []byte {
		return reseal(slices.Concat(b[:5], []byte{3, 1, 2, 3}, b[6:]))
	}
	f, err := DecodeFilter(extended(v[0].AppendTo(nil)), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	equalFilters(t, f, v[0])
	if d, err = DecodeDelta(extended(encode(t, d, v[0])), v[0], Limits{}); err != nil {
		t.Fatal(err)
	}
	if f, err = d.Apply(v[0]); err != nil {
		t.Fatal(err)
	}
	equalFilters(t, f, v[1])
}

// allocated returns how many bytes f allocates: the least of several runs, since the runtime
// also counts what other goroutines allocate.
func allocated(runs int, f func()) uint64 {
	least := uint64(math.MaxUint64)
	for range runs {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}
