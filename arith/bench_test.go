package arith_test

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/klauspost/compress/fse"

	"github.com/summarycache/summarycache/arith"
)

// A shape is the array of a filter of n keys, or the exclusive-or of two filters between which
// a share c of the keys was replaced.
type shape struct {
	name string
	n    int
	mn   float64 // bits a key
	k    int     // hashes
	c    float64
}

var shapes = []shape{
	{"bits=8/k=5", 1_000_000, 8, 5, 0},
	{"bits=14/k=2", 1_000_000, 14, 2, 0},
	{"bits=28/k=4", 1_000_000, 28, 4, 0},
	{"bits=48/k=3", 1_000_000, 48, 3, 0},
	{"bits=92/k=1", 1_000_000, 92, 1, 0},
	{"bits=12/k=3/delta=5%", 1_000_000, 12, 3, 0.05},
	{"bits=16/k=3/delta=1%", 1_000_000, 16, 3, 0.01},
	{"bits=48/k=2/delta=5%", 1_000_000, 48, 2, 0.05},
	{"bits=48/k=2/delta=1%", 1_000_000, 48, 2, 0.01},
	{"bits=92/k=1/delta=1%", 1_000_000, 92, 1, 0.01},
	{"n=10k/bits=14/k=2", 10_000, 14, 2, 0},
	{"n=10k/bits=92/k=1", 10_000, 92, 1, 0},
}

func (s shape) draw() (m, x uint64, words []uint64) {
	rng := rand.New(rand.NewPCG(1, 1))
	m = uint64(s.mn * float64(s.n))
	words = make([]uint64, (m+63)/64)
	set := func(words []uint64, keys int) {
		for range keys * s.k {
			p := rng.Uint64N(m)
			words[p/64] |= 1 << (p % 64)
		}
	}
	if s.c == 0 {
		set(words, s.n)
	} else {
		replaced := int(s.c * float64(s.n))
		gone, come := make([]uint64, len(words)), make([]uint64, len(words))
		set(words, s.n-replaced)
		set(gone, replaced)
		set(come, replaced)
		for i, stay := range words {
			words[i] = (stay | gone[i]) ^ (stay | come[i])
		}
	}
	for _, w := range words {
		x += uint64(bits.OnesCount64(w))
	}
	return m, x, words
}

// fseRun codes and decodes the bytes of words by klauspost's fse, 1 MiB at a time. It keeps its
// buffers from run to run.
type fseRun struct {
	enc, dec fse.Scratch
	array    []byte
	codes    [][]byte // nil if fse cannot compress the block
}

func newFSE(words []uint64) *fseRun {
	r := new(fseRun)
	for _, w := range words {
		r.array = binary.LittleEndian.AppendUint64(r.array, w)
	}
	r.encode(func(code []byte) { r.codes = append(r.codes, append([]byte(nil), code...)) })
	return r
}

const fseBlock = 1 << 20

func (r *fseRun) encode(emit func([]byte)) {
	for in := r.array; len(in) > 0; in = in[min(fseBlock, len(in)):] {
		code, err := fse.Compress(in[:min(fseBlock, len(in))], &r.enc)
		if err != nil {
			code = nil
		}
		emit(code)
	}
}

func (r *fseRun) decode(b *testing.B) {
	for _, code := range r.codes {
		if code == nil {
			continue
		}
		r.dec.DecompressLimit = fseBlock
		if _, err := fse.Decompress(code, &r.dec); err != nil {
			b.Fatal(err)
		}
	}
}

// beside runs ours as a benchmark, with fse before some of its runs, and reports how many times
// faster ours is.
func beside(b *testing.B, bytes uint64, ours, theirs func()) {
	theirs()
	ours()
	b.SetBytes(int64(bytes))
	b.ReportAllocs()
	spent, runs := time.Duration(0), 0
	oursSpent, oursRuns := time.Duration(0), 0
	for b.Loop() {
		if spent <= oursSpent {
			b.StopTimer()
			start := time.Now()
			theirs()
			spent += time.Since(start)
			runs++
			b.StartTimer()
		}
		start := time.Now()
		ours()
		oursSpent += time.Since(start)
		oursRuns++
	}
	b.ReportMetric(spent.Seconds()/float64(runs)/(oursSpent.Seconds()/float64(oursRuns)), "x-fse")
}

var methods = []arith.Method{arith.Adaptive, arith.Block}

func BenchmarkEncode(b *testing.B) {
	for _, s := range shapes {
		b.Run(s.name, func(b *testing.B) {
			m, x, words := s.draw()
			fse := newFSE(words)
			var code []byte
			for _, method := range methods {
				b.Run(method.String(), func(b *testing.B) {
					beside(b, m/8, func() { code = arith.AppendBitmap(code[:0], method, m, words) }, func() { fse.encode(func([]byte) {}) })
					b.ReportMetric(float64(len(code))*8/float64(x), "bits/one")
				})
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, s := range shapes {
		b.Run(s.name, func(b *testing.B) {
			m, x, words := s.draw()
			fse := newFSE(words)
			for _, method := range methods {
				b.Run(method.String(), func(b *testing.B) {
					code := arith.AppendBitmap(nil, method, m, words)
					beside(b, m/8, func() {
						if err := arith.DecodeBitmap(words, method, code, m, x); err != nil {
							b.Fatal(err)
						}
					}, func() { fse.decode(b) })
				})
			}
		})
	}
}

// BenchmarkSet codes sets that are lists of positions, with m far above their number.
func BenchmarkSet(b *testing.B) {
	const m, x = 1 << 34, 1_000_000
	rng := rand.New(rand.NewPCG(1, 1))
	positions := make([]uint64, 0, x)
	for p := rng.Uint64N(m / x * 2); p < m; p += 1 + rng.Uint64N(m/x*2) {
		positions = append(positions, p)
	}
	for _, method := range methods {
		code := arith.AppendSet(nil, method, m, positions)
		b.Run("encode/"+method.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				code = arith.AppendSet(code[:0], method, m, positions)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(positions)), "ns/position")
		})
		b.Run("decode/"+method.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				got := 0
				err := arith.DecodeSet(method, code, m, uint64(len(positions)), func(some []uint64) { got += len(some) })
				if err != nil || got != len(positions) {
					b.Fatal(got, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(positions)), "ns/position")
		})
	}
}
