package arith

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// FuzzSetRoundTrip draws the set that the numbers describe. raw adds positions that random
// draws would not give.
func FuzzSetRoundTrip(f *testing.F) { fuzzSetRoundTrip(f, Adaptive) }

func FuzzBlockRoundTrip(f *testing.F) { fuzzSetRoundTrip(f, Block) }

func fuzzSetRoundTrip(f *testing.F, method Method) {
	f.Add(uint64(1000), uint64(100), uint64(1), []byte{})
	f.Add(uint64(100_000), uint64(50_000), uint64(2), []byte{0, 1, 2, 3})
	f.Add(uint64(1<<39), uint64(300), uint64(3), []byte("clustered"))
	f.Add(uint64(4096), uint64(4095), uint64(4), []byte{0xff})
	f.Fuzz(func(t *testing.T, m, x, seed uint64, raw []byte) {
		m %= MaxUniverse + 1
		positions := fuzzPositions(m, x, seed, raw)
		x = uint64(len(positions))
		code := AppendSet(nil, method, m, positions)
		got, err := decodeSet(nil, method, code, m, x)
		if err != nil || !slices.Equal(got, positions) {
			t.Fatalf("m=%d x=%d: DecodeSet = %d positions, %v", m, x, len(got), err)
		}
		if m > 1<<16 {
			return
		}
		if slow := slowSet(method, m, positions); !bytes.Equal(code, slow) {
			t.Fatalf("m=%d x=%d: AppendSet = %x, the slow coder says %x", m, x, code, slow)
		}
		words := bitmapOf(m, positions)
		if again := AppendBitmap(nil, method, m, words); !bytes.Equal(again, code) {
			t.Fatalf("m=%d x=%d: AppendBitmap = %x, AppendSet = %x", m, x, again, code)
		}
		clear(words)
		if err := DecodeBitmap(words, method, code, m, x); err != nil || !slices.Equal(words, bitmapOf(m, positions)) {
			t.Fatalf("m=%d x=%d: DecodeBitmap: %v", m, x, err)
		}
	})
}

func fuzzPositions(m, x, seed uint64, raw []byte) []uint64 {
	if m == 0 {
		return nil
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	var positions []uint64
	if m <= 1<<14 {
		x %= m + 1
		for p := range m {
			if rng.Uint64N(m-p) < x {
				positions = append(positions, p)
				x--
			}
		}
	} else {
		for range x % 4096 {
			positions = append(positions, rng.Uint64N(m))
		}
	}
	p := uint64(0)
	for _, step := range raw {
		p += uint64(step)*uint64(step) + 1
		positions = append(positions, p%m)
	}
	slices.Sort(positions)
	return slices.Compact(positions)
}

// FuzzDecodeSet feeds arbitrary bytes to the set decoders. The result must be an error, or the
// one set with this code.
func FuzzDecodeSet(f *testing.F) { fuzzDecodeSet(f, Adaptive) }

func FuzzDecodeBlock(f *testing.F) { fuzzDecodeSet(f, Block) }

func fuzzDecodeSet(f *testing.F, method Method) {
	f.Add(uint64(100), uint64(10), []byte{})
	f.Add(uint64(1<<40), uint64(3), []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	rng := rand.New(rand.NewPCG(9, 9))
	for _, c := range []struct{ m, x uint64 }{{5000, 1000}, {5000, 4990}, {5000, 80}, {1 << 40, 40}} {
		code := AppendSet(nil, method, c.m, draw(rng, c.m, c.x))
		f.Add(c.m, c.x, code)
		f.Add(c.m, c.x, code[:len(code)/2])
	}
	f.Fuzz(func(t *testing.T, m, x uint64, src []byte) {
		if m > 1<<20 {
			x = min(x, 1<<20) // like a caller's limits
		}
		got, err := decodeSet(nil, method, src, m, x)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrTruncated) || len(got) != 0 {
				t.Fatalf("m=%d x=%d: decodeSet(%x) = %d positions, %v", m, x, src, len(got), err)
			}
		} else if again := AppendSet(nil, method, m, got); uint64(len(got)) != x || !bytes.Equal(again, src) {
			t.Fatalf("m=%d x=%d: DecodeSet accepts %x, the set's code is %x", m, x, src, again)
		}
		if m > 1<<20 {
			return
		}
		words := make([]uint64, wordsFor(m))
		if errBitmap := DecodeBitmap(words, method, src, m, x); (errBitmap == nil) != (err == nil) {
			t.Fatalf("m=%d x=%d: DecodeBitmap(%x) = %v, DecodeSet: %v", m, x, src, errBitmap, err)
		} else if err == nil && !slices.Equal(words, bitmapOf(m, got)) {
			t.Fatalf("m=%d x=%d: DecodeBitmap(%x) and DecodeSet differ", m, x, src)
		}
	})
}
