package arith

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// slowGiven is AppendBitmapGiven as the specification words it.
func slowGiven(m uint64, words, context []uint64) []byte {
	var sets [2][]uint64 // ranks of the ones, by context
	var seen [2]uint64
	for p := range m {
		c := context[p/64] >> (p % 64) & 1
		if words[p/64]>>(p%64)&1 == 1 {
			sets[c] = append(sets[c], seen[c])
		}
		seen[c]++
	}
	var codes [2][]byte
	for c, set := range sets {
		codes[c] = slowSet(Choose(seen[c], uint64(len(set))), seen[c], set)
	}
	return slices.Concat(binary.AppendUvarint(nil, uint64(len(codes[0]))), codes[0], codes[1])
}

// onesGiven returns x0 and x1.
func onesGiven(words, context []uint64) (x0, x1 uint64) {
	for i, w := range words {
		x0 += popcount([]uint64{w &^ context[i]})
		x1 += popcount([]uint64{w & context[i]})
	}
	return x0, x1
}

func TestGiven(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 12))
	for _, c := range []struct {
		name                string
		m, zeros, ones, set uint64 // of zeros and ones of the context, how many in 1000 are set
	}{
		{"nothing", 0, 0, 0, 0}, {"one bit", 1, 0, 1000, 1000}, {"no context", 1000, 300, 0, 0}, {"all context", 1000, 0, 300, 1000},
		{"a delta", 100_000, 3, 20, 130}, {"equal", 5000, 0, 1000, 300}, {"reverse", 5003, 1000, 0, 300},
		{"large", 2_000_000, 50, 200, 400},
	} {
		words, context := make([]uint64, wordsFor(c.m)), make([]uint64, wordsFor(c.m))
		for p := range c.m {
			share := c.zeros
			if rng.Uint64N(1000) < c.set {
				context[p/64] |= 1 << (p % 64)
				share = c.ones
			}
			if rng.Uint64N(1000) < share {
				words[p/64] |= 1 << (p % 64)
			}
		}
		x0, x1 := onesGiven(words, context)
		m1 := popcount(context)
		code := AppendBitmapGiven([]byte{7}, c.m, words, context)[1:]
		if c.m < 1<<20 && !bytes.Equal(code, slowGiven(c.m, words, context)) {
			t.Errorf("%s: the slow coder says otherwise", c.name)
		}
		limit := (limitBits(c.m-m1, x0) + limitBits(m1, x1)) / 8
		if float64(len(code)) > 1.0005*limit+30 {
			t.Errorf("%s: %d bytes, the limit is %.1f", c.name, len(code), limit)
		}
		got := make([]uint64, len(words))
		if err := DecodeBitmapGiven(got, code, c.m, x0, x1, context); err != nil || !slices.Equal(got, words) {
			t.Errorf("%s: DecodeBitmapGiven: %v", c.name, err)
		}
		if err := Workers(2).DecodeBitmapGiven(got, code, c.m, x0, x1, context); err != nil || !slices.Equal(got, words) {
			t.Errorf("%s: two workers decode: %v", c.name, err)
		}
		if again := Workers(2).AppendBitmapGiven(nil, c.m, words, context); !bytes.Equal(again, code) {
			t.Errorf("%s: two workers code it otherwise", c.name)
		}
		if err := DecodeBitmapGiven(got, append(code, 0), c.m, x0, x1, context); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: DecodeBitmapGiven with a byte more = %v, want %v", c.name, err, ErrCorrupt)
		}
		if err := DecodeBitmapGiven(got, code[:len(code)-1], c.m, x0, x1, context); err == nil && slices.Equal(got, words) {
			t.Errorf("%s: DecodeBitmapGiven does not miss the last byte", c.name)
		}
		if err := DecodeBitmapGiven(got, code, c.m, c.m-m1+1, x1, context); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: DecodeBitmapGiven with more ones than bits = %v, want %v", c.name, err, ErrCorrupt)
		}
	}
}

func TestGivenDirectory(t *testing.T) {
	words, context := []uint64{0}, []uint64{0xff}
	for _, c := range []struct {
		src  []byte
		want error
	}{
		{nil, ErrTruncated}, {[]byte{0x80}, ErrTruncated}, {[]byte{0x80, 0}, ErrCorrupt}, {[]byte{1}, ErrTruncated},
		{[]byte{1, 0}, ErrCorrupt}, {[]byte{0, 0}, ErrCorrupt}, {bytes.Repeat([]byte{0xff}, 11), ErrCorrupt}, {[]byte{0}, nil},
	} {
		if err := DecodeBitmapGiven(words, c.src, 64, 0, 0, context); !errors.Is(err, c.want) {
			t.Errorf("DecodeBitmapGiven(%x) = %v, want %v", c.src, err, c.want)
		}
	}
}

func TestGivenAllocations(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 13))
	for _, m := range []uint64{10_000, 1_000_000} {
		words, context := drawWords(rng, m, m/50), drawWords(rng, m, m/5)
		x0, x1 := onesGiven(words, context)
		code := AppendBitmapGiven(nil, m, words, context)
		for name, call := range map[string]func(){
			"AppendBitmapGiven": func() { code = AppendBitmapGiven(code[:0], m, words, context) },
			"DecodeBitmapGiven": func() { _ = DecodeBitmapGiven(words, code, m, x0, x1, context) },
		} {
			if n := testing.AllocsPerRun(5, call); n != 1 {
				t.Errorf("m=%d: %s allocates %v times, want once", m, name, n)
			}
		}
	}
}

// fuzzGiven makes two arrays of m bits of any bytes.
func fuzzGiven(m uint64, raw []byte) (words, context []uint64) {
	words, context = make([]uint64, wordsFor(m)), make([]uint64, wordsFor(m))
	for i, b := range raw {
		if at := uint64(i/2) * 8; at < m {
			array := [2][]uint64{words, context}[i%2]
			array[at/64] |= uint64(b) << (at % 64)
		}
	}
	if m%64 != 0 {
		words[len(words)-1] &= 1<<(m%64) - 1
		context[len(context)-1] &= 1<<(m%64) - 1
	}
	return words, context
}

func FuzzGivenRoundTrip(f *testing.F) {
	f.Add(uint64(0), []byte{})
	f.Add(uint64(100), []byte{1, 0xff, 0x80, 0x7f, 3})
	f.Add(uint64(4096), bytes.Repeat([]byte{0x11, 0x93, 0, 7}, 300))
	f.Fuzz(func(t *testing.T, m uint64, raw []byte) {
		m %= 1 << 15
		words, context := fuzzGiven(m, raw)
		x0, x1 := onesGiven(words, context)
		code := AppendBitmapGiven(nil, m, words, context)
		if slow := slowGiven(m, words, context); !bytes.Equal(code, slow) {
			t.Fatalf("m=%d: AppendBitmapGiven = %x, the slow coder says %x", m, code, slow)
		}
		got := make([]uint64, len(words))
		if err := DecodeBitmapGiven(got, code, m, x0, x1, context); err != nil || !slices.Equal(got, words) {
			t.Fatalf("m=%d: DecodeBitmapGiven: %v", m, err)
		}
	})
}

// FuzzDecodeGiven feeds any bytes to the decoder: an error, or the one array
// whose code they are.
func FuzzDecodeGiven(f *testing.F) {
	rng := rand.New(rand.NewPCG(14, 14))
	words, context := drawWords(rng, 512, 40), drawWords(rng, 512, 100)
	raw := make([]byte, 0, 128)
	for i := range 64 {
		raw = append(raw, 0, byte(context[i/8]>>(i%8*8)))
	}
	x0, x1 := onesGiven(words, context)
	code := AppendBitmapGiven(nil, 512, words, context)
	f.Add(uint64(512), x0, x1, raw, code)
	f.Add(uint64(512), x0, x1, raw, code[:len(code)/2])
	f.Add(uint64(512), x0+1, x1, raw, code)
	f.Add(uint64(9), uint64(1<<40), uint64(3), []byte{}, []byte{0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, m, x0, x1 uint64, raw, src []byte) {
		m %= 1 << 15
		words, context := fuzzGiven(m, raw)
		if err := DecodeBitmapGiven(words, src, m, x0, x1, context); err != nil {
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrTruncated) {
				t.Fatal(err)
			}
			return
		}
		if a, b := onesGiven(words, context); a != x0 || b != x1 {
			t.Fatalf("m=%d: %d and %d ones, want %d and %d", m, a, b, x0, x1)
		}
		if again := AppendBitmapGiven(nil, m, words, context); !bytes.Equal(again, src) {
			t.Fatalf("m=%d: accepts %x, the code is %x", m, src, again)
		}
	})
}
