package arith

import (
	"bytes"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// A script drives encoder, slow encoder and decoder through the same symbols.
// Every byte is an operation and its operand.
type script struct {
	bits    [4]Bit
	symbols *Symbols
}

func newScript() *script {
	return &script{bits: [4]Bit{NewBit(), NewBit(), NewBit(), NewBit()}, symbols: NewSymbols(37)}
}

func (s *script) encode(ops []byte) []byte {
	var e Encoder
	e.Reset([]byte("prefix"))
	for _, op := range ops {
		switch v := int(op & 63); op >> 6 {
		case 0:
			e.EncodeBit(&s.bits[v>>1&3], v&1)
		case 1:
			e.EncodeSymbol(s.symbols, v%37)
		case 2:
			e.EncodeUniform(uint64(v), 6+uint(v%35))
		case 3:
			e.Encode(uint64(v), uint64(v)+1, 64+uint64(v)<<24)
		}
	}
	return e.Finish()[len("prefix"):]
}

func (s *script) slow(ops []byte) []byte {
	e := newSlowEncoder()
	counts := make([]uint64, 37)
	for i := range counts {
		counts[i] = 1
	}
	for _, op := range ops {
		switch v := int(op & 63); op >> 6 {
		case 0:
			b := &s.bits[v>>1&3]
			e.adaptiveBit(b.C0, b.C1, v&1)
			if v&1 == 0 {
				b.C0++
			} else {
				b.C1++
			}
		case 1:
			start, total := uint64(0), uint64(0)
			for i, c := range counts {
				if i < v%37 {
					start += c
				}
				total += c
			}
			e.encode(start, start+counts[v%37], total)
			counts[v%37]++
		case 2:
			e.uniform(uint64(v), 6+uint(v%35))
		case 3:
			e.encode(uint64(v), uint64(v)+1, 64+uint64(v)<<24)
		}
	}
	return e.finish()
}

// decode reads len(ops) symbols; ops says of which kind, the result is what
// they turned out to be.
func (s *script) decode(src, ops []byte) ([]byte, error) {
	var d Decoder
	d.Reset(src)
	got := make([]byte, len(ops))
	for i, op := range ops {
		want := int(op & 63)
		v := 0
		switch op >> 6 {
		case 0:
			v = want&^1 | d.DecodeBit(&s.bits[want>>1&3])
		case 1:
			v = d.DecodeSymbol(s.symbols)
			if v == want%37 {
				v = want
			}
		case 2:
			v = int(d.DecodeUniform(6+uint(want%35)) & 63)
		case 3:
			total := 64 + uint64(want)<<24
			f := d.Target(total)
			d.Consume(f, f+1, total)
			v = int(f & 63)
		}
		got[i] = op&^63 | byte(v&63)
	}
	return got, d.Finish()
}

func checkScript(t *testing.T, ops []byte) {
	t.Helper()
	code := newScript().encode(ops)
	if slow := newScript().slow(ops); !bytes.Equal(code, slow) {
		t.Fatalf("encode(%x) = %x, the slow coder says %x", ops, code, slow)
	}
	got, err := newScript().decode(code, ops)
	if err != nil || !bytes.Equal(got, ops) {
		t.Fatalf("decode(encode(%x)) = %x, %v", ops, got, err)
	}
	if _, err := newScript().decode(append(code, 0), ops); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("decode(%x and a zero byte) = %v, want %v", code, err, ErrCorrupt)
	}
	for n := max(0, len(code)-10); n < len(code); n++ {
		if got, err := newScript().decode(code[:n], ops); err == nil {
			// What is left may be the code of other symbols, never of these.
			if bytes.Equal(got, ops) {
				t.Fatalf("decode(%x) of %d bytes succeeds after %d", code, len(code), n)
			}
		}
	}
}

func TestCoderAgainstSlow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for size := range 150 {
		ops := make([]byte, size)
		for i := range ops {
			ops[i] = byte(rng.Uint32())
		}
		checkScript(t, ops)
		for i := range ops {
			ops[i] &= 0xc1 // likely symbols: few words, long carries
		}
		checkScript(t, ops)
	}
}

func FuzzCoder(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0x01, 0x00, 0x41, 0x80, 0xbf, 0xff, 0xc0})
	f.Add(bytes.Repeat([]byte{0xff}, 100))
	f.Add(bytes.Repeat([]byte{1}, 300))
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) > 512 {
			ops = ops[:512]
		}
		checkScript(t, ops)
	})
}

// FuzzDecoder feeds any bytes to the decoder: it must come to an end, and
// what it accepts must be what the encoder writes.
func FuzzDecoder(f *testing.F) {
	f.Add([]byte{}, []byte{})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, []byte{1, 2, 3})
	ops := []byte{0x01, 0x00, 0x41, 0x80, 0xbf, 0xff, 0xc0}
	f.Add(newScript().encode(ops), ops)
	f.Fuzz(func(t *testing.T, src, ops []byte) {
		if len(ops) > 512 {
			ops = ops[:512]
		}
		for i := range ops {
			ops[i] &= 0x7f // bits and symbols: the kinds that all values of a byte can name
			if ops[i]>>6 == 1 {
				ops[i] = 0x40 | ops[i]&63%37
			}
		}
		got, err := newScript().decode(src, ops)
		if err != nil {
			if !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrCorrupt) {
				t.Fatalf("decode(%x) = %v", src, err)
			}
			return
		}
		if again := newScript().encode(got); !bytes.Equal(again, src) {
			t.Fatalf("decode(%x) accepts %x, whose code is %x", src, got, again)
		}
	})
}

// log2Factorial is log2 n!.
func log2Factorial(n uint64) float64 {
	v, _ := math.Lgamma(float64(n) + 1)
	return v / math.Ln2
}

// limitBits is log2 C(m, x).
func limitBits(m, x uint64) float64 {
	return log2Factorial(m) - log2Factorial(x) - log2Factorial(m-x)
}

// TestBitLength holds the coder to the appendix of Mitzenmacher's paper: m
// bits of which x are one take log2 (m+1)!/(x!(m-x)!) bits in any order.
func TestBitLength(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for _, c := range []struct{ m, x int }{
		{1, 0}, {1, 1}, {100, 0}, {100, 50}, {10_000, 1}, {100_000, 100_000},
		{80_000, 37_178}, {140_000, 18_640}, {140_000, 121_360}, {1_000_000, 1_000},
	} {
		formula := log2Factorial(uint64(c.m)+1) - log2Factorial(uint64(c.x)) - log2Factorial(uint64(c.m-c.x))
		for _, order := range []string{"random", "ones first"} {
			bits := make([]int, c.m)
			for i := range c.x {
				bits[i] = 1
			}
			if order == "random" {
				rng.Shuffle(c.m, func(i, j int) { bits[i], bits[j] = bits[j], bits[i] })
			}
			var e Encoder
			e.Reset(nil)
			model := NewBit()
			for _, b := range bits {
				e.EncodeBit(&model, b)
			}
			spent := float64(8*len(e.dst)) + 64 - math.Log2(float64(e.width))
			if math.Abs(spent-formula) > 1e-4 {
				t.Errorf("%d bits, %d ones, %s: narrows by %.5f bits, want %.5f", c.m, c.x, order, spent, formula)
			}
			// The length of a code is known, so its last bytes may be missing.
			if got := float64(8 * len(e.Finish())); got > formula+10 {
				t.Errorf("%d bits, %d ones, %s: %v bits, want %.1f and at most 10 more", c.m, c.x, order, got, formula)
			}
		}
	}
}

func TestSymbolsHalve(t *testing.T) {
	model := NewSymbols(5)
	model.limit = 64
	for i := range 1000 {
		model.learn(i * i % 5)
		sum := uint64(0)
		for symbol := range 5 {
			count := model.before(symbol+1) - model.before(symbol)
			if count == 0 {
				t.Fatalf("after %d symbols, %d has no count left", i+1, symbol)
			}
			sum += count
		}
		if sum != model.total || sum > model.limit {
			t.Fatalf("after %d symbols, counts sum to %d, total is %d, limit %d", i+1, sum, model.total, model.limit)
		}
		for f := range model.total {
			symbol, start := model.find(f)
			if start != model.before(symbol) || f < start || f >= model.before(symbol+1) {
				t.Fatalf("find(%d) = %d, %d", f, symbol, start)
			}
		}
	}
}

// TestSymbolsLength: an adaptive model over n symbols spends
// log2 (N+n-1)!/((n-1)! prod counts!) bits on N of them.
func TestSymbolsLength(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	const n, total = 20, 100_000
	model := NewSymbols(n)
	var e Encoder
	e.Reset(nil)
	counts := make([]uint64, n)
	for range total {
		symbol := min(rng.IntN(n), rng.IntN(n), rng.IntN(n))
		counts[symbol]++
		e.EncodeSymbol(model, symbol)
	}
	want := log2Factorial(total+n-1) - log2Factorial(n-1)
	for _, c := range counts {
		want -= log2Factorial(c)
	}
	spent := float64(8*len(e.dst)) + 64 - math.Log2(float64(e.width))
	if math.Abs(spent-want) > 1e-3 {
		t.Errorf("%d symbols narrow by %.5f bits, want %.5f", total, spent, want)
	}
}

// TestDecoderErr: a loop that ends at a symbol which never comes ends by Err.
func TestDecoderErr(t *testing.T) {
	const end = 2
	rng := rand.New(rand.NewPCG(8, 8))
	model := NewSymbols(3)
	var e Encoder
	e.Reset(nil)
	const coded = 1000
	for range coded {
		e.EncodeSymbol(model, rng.IntN(end))
	}
	code := e.Finish()

	model.Reset()
	var d Decoder
	d.Reset(code)
	n := 0
	for d.Err() == nil && d.DecodeSymbol(model) != end {
		if n++; n > 1000*coded {
			t.Fatal("it goes on and on")
		}
	}
	if n < coded || !errors.Is(d.Err(), ErrTruncated) {
		t.Errorf("after %d symbols Err = %v, want ErrTruncated after %d or more", n, d.Err(), coded)
	}
	d.DecodeSymbol(model)
	if err := d.Finish(); err != d.Err() || !errors.Is(err, ErrTruncated) {
		t.Errorf("Finish = %v, Err = %v", err, d.Err())
	}
}

func TestEncodeRefusesEmptyInterval(t *testing.T) {
	for name, call := range map[string]func(e *Encoder){
		"empty":         func(e *Encoder) { e.Encode(3, 3, 5) },
		"beyond total":  func(e *Encoder) { e.Encode(3, 6, 5) },
		"total too big": func(e *Encoder) { e.Encode(3, 6, MaxTotal+1) },
		"uniform value": func(e *Encoder) { e.EncodeUniform(8, 3) },
		"uniform bits":  func(e *Encoder) { e.EncodeUniform(8, 41) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			var e Encoder
			e.Reset(nil)
			call(&e)
		}()
	}
}

func TestShortest(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for range 10_000 {
		low, width := rng.Uint64()|^uint64(0)>>rng.UintN(64), rng.Uint64()>>rng.UintN(32)|1
		v, n := shortest(low, width)
		num := new(big.Int).Add(new(big.Int).SetUint64(low), new(big.Int).SetUint64(v-low))
		if v-low >= width || n < 8 && v<<(8*n) != 0 && n > 0 || num.Uint64() != v {
			t.Fatalf("shortest(%x, %x) = %x, %d", low, width, v, n)
		}
	}
}
