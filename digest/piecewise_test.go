package digest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/summarycache/summarycache/sim/cputime"
)

// A countingReader counts what is read of a message.
type countingReader struct {
	io.ReaderAt
	reads, bytes int
}

func (c *countingReader) ReadAt(b []byte, at int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(b, at)
	c.reads++
	c.bytes += n
	return n, err
}

func aMillion(t testing.TB) (*Filter, []Key) {
	rng := rand.New(rand.NewPCG(16, 5))
	keys := make([]Key, 1_000_000)
	for i := range keys {
		keys[i] = Key(rng.Uint64())
	}
	c, err := NewCountingFilter(Geometry{Bits: 1000 * uint64(len(keys)), Hashes: 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		c.Add(k)
	}
	return c.Advance(), keys
}

// TestPiecewiseOfMillion: with the head, a lookup in a digest of a million keys takes one read of 3.5 kB,
// wherever the key is, and the message is at most 12 % longer than the plain one.
func TestPiecewiseOfMillion(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("one goroutine that codes a million keys")
	}
	f, keys := aMillion(t)
	plain, b := len(f.AppendTo(nil)), f.AppendPieces(nil, 0)
	most := 0
	for i := range 1000 {
		in := &countingReader{ReaderAt: bytes.NewReader(b)}
		at, err := OpenFilter(in, b[:HeadBytes], Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if yes, err := at.MayContain(keys[i]); !yes || err != nil {
			t.Fatalf("MayContain(key %d) = %v, %v", i, yes, err)
		}
		if in.reads != 1 || in.bytes > 3500 {
			t.Fatalf("key %d took %d reads of together %d bytes", i, in.reads, in.bytes)
		}
		most = max(most, in.bytes)
	}
	t.Logf("%d bytes, plain %d, %+.2f %%; at most %d read of 1000 keys", len(b), plain, 100*(float64(len(b))/float64(plain)-1), most)
	if 100*len(b) > 112*plain {
		t.Errorf("%d bytes in pieces, %d plain", len(b), plain)
	}
}

// TestPiecewise: a filter of any shape in pieces of any length is the same filter, decoded as a
// whole or piece by piece.
func TestPiecewise(t *testing.T) {
	for _, g := range append(geometries, Geometry{Bits: 1 << 16, Hashes: 1}, Geometry{Bits: 3_000_017, Hashes: 2}) {
		for _, n := range []int{0, 1, 20, 2000} {
			rng := rand.New(rand.NewPCG(uint64(n), 1))
			var held, asked []Key
			for range n {
				held = append(held, Key(rng.Uint64()))
			}
			for range 50 {
				asked = append(asked, Key(rng.Uint64()))
			}
			c := counting(t, g, held...)
			f := c.Advance()
			for _, pieceBytes := range []int{1, 50, 0, 1 << 20} {
				name := fmt.Sprintf("%v, %d keys, pieces of %d bytes", g, n, pieceBytes)
				b := f.AppendPieces(nil, pieceBytes)
				if got := f.AppendPieces([]byte("before"), pieceBytes); string(got) != "before"+string(b) {
					t.Errorf("%s: appended, they are others", name)
				}
				lim := Limits{Seed: g.Seed}
				whole, err := DecodeFilter(b, lim)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				equalFilters(t, whole, f)
				in := &countingReader{ReaderAt: bytes.NewReader(b)}
				at, err := OpenFilter(in, nil, lim)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if h := at.Header(); h.Version != f.Version() || h.Ones != f.Ones() || h.Keys != f.Keys() {
					t.Errorf("%s: %+v", name, h)
				}
				if in.reads > 1 {
					t.Errorf("%s: %d reads for the head", name, in.reads)
				}
				for _, k := range append(asked, held[:min(n, 50)]...) {
					in.reads = 0
					if yes, err := at.MayContain(k); err != nil || yes != f.MayContain(k) {
						t.Fatalf("%s: MayContain(%x) = %v, %v", name, k, yes, err)
					}
					if in.reads > g.Hashes {
						t.Errorf("%s: %d reads for a key", name, in.reads)
					}
				}
			}
		}
	}
}

// TestPiecewiseDamaged: whichever bit of the message is flipped, and wherever it ends, reads
// are refused or correct.
func TestPiecewiseDamaged(t *testing.T) {
	g := Geometry{Bits: 1 << 20, Hashes: 1}
	f := versions(t, g, 100, 1, 0)[0]
	b := f.AppendPieces(nil, 100)
	check := func(what string, b []byte) {
		t.Helper()
		if _, err := DecodeFilter(b, Limits{}); err == nil {
			t.Errorf("%s: it can be decoded as a whole", what)
		} else {
			checkError(t, err)
		}
		at, err := OpenFilter(bytes.NewReader(b), nil, Limits{})
		if err != nil {
			checkError(t, err)
			return
		}
		for p := range f.all() {
			if yes, err := at.contains(p); err != nil {
				checkError(t, err)
			} else if !yes {
				t.Fatalf("%s: position %d is denied", what, p)
			}
		}
	}
	for i := range b {
		damaged := bytes.Clone(b)
		damaged[i] ^= 1 << (i % 8)
		check(fmt.Sprintf("a bit of byte %d flipped", i), damaged)
		check(fmt.Sprintf("cut to %d bytes", i), b[:i])
	}
}

// TestPiecewiseReplaced: a message that is replaced after its head was read is refused, and
// errors of the reader are returned.
func TestPiecewiseReplaced(t *testing.T) {
	v := versions(t, Geometry{Bits: 1 << 20, Hashes: 1}, 300, 2, 5)
	file := bytes.NewReader(v[0].AppendPieces(nil, 100))
	at, err := OpenFilter(file, nil, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	file.Reset(v[1].AppendPieces(nil, 150))
	for p := range v[0].all() {
		if _, err := at.contains(p); !errors.Is(err, ErrCorrupt) {
			t.Errorf("position %d of another file: %v", p, err)
		}
	}
	failed := errors.New("no route to host")
	if _, err := OpenFilter(failing{failed}, nil, Limits{}); !errors.Is(err, failed) {
		t.Errorf("OpenFilter = %v", err)
	}
	at.r = failing{failed}
	if _, err := at.MayContain(1); !errors.Is(err, failed) {
		t.Errorf("MayContain = %v", err)
	}
}

type failing struct{ err error }

func (f failing) ReadAt([]byte, int64) (int, error) { return 0, f.err }

// TestPiecewiseCrowded: crowded positions do not make all pieces as long as one, and a piece beyond
// the memory is refused before memory is allocated for it.
func TestPiecewiseCrowded(t *testing.T) {
	const n = 1 << 20
	positions := make([]uint64, n)
	for i := range positions {
		positions[i] = 7 + uint64(i)*3
	}
	f := newFilter(Geometry{Bits: 1 << 30, Hashes: 1}, Version{Epoch: 1}, n, positions)
	f.version.State = f.state()
	b := f.AppendPieces(nil, 1000)
	if plain := len(f.AppendTo(nil)); len(b) > 3*plain {
		t.Errorf("%d bytes in pieces, %d plain", len(b), plain)
	}
	got, err := DecodeFilter(b, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	equalFilters(t, got, f)
	at, err := OpenFilter(bytes.NewReader(b), nil, Limits{Memory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := at.contains(10); !errors.Is(err, ErrTooLarge) {
		t.Errorf("within a mebibyte: %v", err)
	}
}

// BenchmarkFilterAt looks up one key in a digest of a million, with or without reading the
// head first.
func BenchmarkFilterAt(b *testing.B) {
	f, keys := aMillion(b)
	message := bytes.NewReader(f.AppendPieces(nil, 0))
	open := func() *FilterAt {
		at, err := OpenFilter(message, nil, Limits{})
		if err != nil {
			b.Fatal(err)
		}
		return at
	}
	ask := func(at *FilterAt, i int) {
		if yes, err := at.MayContain(keys[i%len(keys)]); !yes || err != nil {
			b.Fatal(yes, err)
		}
	}
	for name, one := range map[string]func(i int){
		"head=read": func(i int) { ask(open(), i) },
		"head=held": func() func(i int) { at := open(); return func(i int) { ask(at, i) } }(),
	} {
		b.Run("n=1M/"+name, func(b *testing.B) {
			b.ReportAllocs()
			i, begin := 0, cputime.Used()
			for b.Loop() {
				one(i)
				i++
			}
			b.ReportMetric(float64((cputime.Used()-begin).Nanoseconds())/float64(i), "cpu-ns/op")
		})
	}
}
