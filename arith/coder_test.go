package arith

import (
	"bytes"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// A script drives encoder, slow encoder and decoder through the same decisions. Every
// byte is an operation and its operand.

// scriptOdds are probabilities of a zero.
var scriptOdds = [4]uint64{1 << 32, 1 << 63, 1<<64 - 1<<32, 3 << 62}

func scriptEncode(ops []byte) []byte {
	var e encoder
	e.reset([]byte("prefix"))
	for _, op := range ops {
		switch v := uint64(op & 63); op >> 6 {
		case 0:
			e.encodeBit(scriptOdds[v>>1&3], v&1)
		case 1:
			e.encodeBits(scriptOdds[v>>4], v&15, 4)
		case 2:
			e.encodeUniform(v, 6+uint(v%35))
		case 3:
			e.encodeBit((v>>1+1)<<58, v&1)
		}
	}
	return e.finish()[len("prefix"):]
}

func scriptSlow(ops []byte) []byte {
	e := newSlowEncoder()
	for _, op := range ops {
		switch v := uint64(op & 63); op >> 6 {
		case 0:
			e.bit(num(scriptOdds[v>>1&3]), v&1)
		case 1:
			for i := range 4 {
				e.bit(num(scriptOdds[v>>4]), v>>i&1)
			}
		case 2:
			e.uniform(v, 6+uint(v%35))
		case 3:
			e.bit(num((v>>1+1)<<58), v&1)
		}
	}
	return e.finish()
}

// scriptDecode reads len(ops) decisions. ops has their kinds; the result has their values.
func scriptDecode(src, ops []byte) ([]byte, error) {
	var d decoder
	d.reset(src)
	got := make([]byte, len(ops))
	for i, op := range ops {
		want := uint64(op & 63)
		v := uint64(0)
		switch op >> 6 {
		case 0:
			v = want&^1 | d.decodeBit(scriptOdds[want>>1&3])
		case 1:
			v = want&^15 | d.decodeBits(scriptOdds[want>>4], 4)
		case 2:
			v = d.decodeUniform(6+uint(want%35)) & 63
		case 3:
			v = want&^1 | d.decodeBit((want>>1+1)<<58)
		}
		got[i] = op&^63 | byte(v)
	}
	return got, d.finish()
}

func checkScript(t *testing.T, ops []byte) {
	t.Helper()
	code := scriptEncode(ops)
	if slow := scriptSlow(ops); !bytes.Equal(code, slow) {
		t.Fatalf("encode(%x) = %x, the slow coder says %x", ops, code, slow)
	}
	got, err := scriptDecode(code, ops)
	if err != nil || !bytes.Equal(got, ops) {
		t.Fatalf("decode(encode(%x)) = %x, %v", ops, got, err)
	}
	if _, err := scriptDecode(append(code, 0), ops); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("decode(%x and a zero byte) = %v, want %v", code, err, ErrCorrupt)
	}
	for n := max(0, len(code)-10); n < len(code); n++ {
		if got, err := scriptDecode(code[:n], ops); err == nil {
			// What is left may be the code of other symbols, but not of these.
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

// FuzzDecoder feeds arbitrary bytes to the decoder. It must end, and what it accepts must be
// what the encoder writes.
func FuzzDecoder(f *testing.F) {
	f.Add([]byte{}, []byte{})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, []byte{1, 2, 3})
	ops := []byte{0x01, 0x00, 0x41, 0x80, 0xbf, 0xff, 0xc0}
	f.Add(scriptEncode(ops), ops)
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
		got, err := scriptDecode(src, ops)
		if err != nil {
			if !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrCorrupt) {
				t.Fatalf("decode(%x) = %v", src, err)
			}
			return
		}
		if again := scriptEncode(got); !bytes.Equal(again, src) {
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
