package digest

import (
	"encoding/binary"
	"math/bits"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// TestSipHash: the vectors of SipHash's authors, for the key 00 01 … 0f and the
// messages 00 01 … of growing length.
func TestSipHash(t *testing.T) {
	const k0, k1 = 0x0706050403020100, 0x0f0e0d0c0b0a0908
	message := make([]byte, 64)
	for i := range message {
		message[i] = byte(i)
	}
	for n, want := range map[int]uint64{
		0:  0x726fdb47dd0e0e31,
		1:  0x74f839c593dc67fd,
		2:  0x0d6c8009d9a94f5a,
		3:  0x85676696d7fb7e2d,
		7:  0xab0200f58b01d137,
		8:  0x93f5f5799a932462,
		15: 0xa129ca6149be45e5,
	} {
		if got := sipHash(k0, k1, message[:n]); got != want {
			t.Errorf("sipHash of %d bytes = %016x, want %016x", n, got, want)
		}
	}
}

func TestKeyOf(t *testing.T) {
	const url = "GET https://example.com/a/rather/long/path?with=query"
	for n := range len(url) {
		if KeyOf(1, []byte(url[:n])) != KeyOfString(1, url[:n]) {
			t.Errorf("bytes and string of length %d differ", n)
		}
	}
	if KeyOfString(1, url) == KeyOfString(2, url) {
		t.Error("the seed does not matter")
	}
	if got := testing.AllocsPerRun(100, func() { KeyOfString(1, url) }); got != 0 {
		t.Errorf("KeyOfString allocates %v times", got)
	}
	if SeedFrom(nil) != 0 || SeedFrom([]byte("a")) == SeedFrom([]byte("b")) || SeedFrom([]byte("a")) == 0 {
		t.Error("SeedFrom does not tell secrets apart")
	}
	if seedTag(0) != 0 || seedTag(1) == seedTag(2) {
		t.Error("seedTag does not tell seeds apart")
	}
}

// TestXXHashIsNoKeyedHash is why keys are not made by XXH64: two names of 16
// bytes that collide whatever the seed, found by undoing one round. A stranger
// could have one cached at every peer and ask for the other: false hits at will.
func TestXXHashIsNoKeyedHash(t *testing.T) {
	const (
		prime1 = 0x9e3779b185ebca87
		prime2 = 0xc2b2ae3d27d4eb4f
	)
	round := func(word uint64) uint64 { return bits.RotateLeft64(word*prime2, 31) * prime1 }
	undo := func(hash uint64) uint64 { return bits.RotateLeft64(hash*inverse(prime1), -31) * inverse(prime2) }
	a := binary.LittleEndian.Uint64([]byte("GET /a/b"))
	b := binary.LittleEndian.Uint64([]byte("/c/d/efg"))
	// A difference that the rotation by 27 and the multiplication by an odd number
	// leave in the top bit alone, where the second word cancels it.
	a2 := undo(round(a) ^ 1<<36)
	b2 := undo(round(b) ^ 1<<63)
	one := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, a), b)
	two := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, a2), b2)
	r := random(1)
	for range 1_000 {
		seed := r.Uint64()
		if sum(seed, one) != sum(seed, two) {
			t.Fatal("XXH64 told the two apart")
		}
		if KeyOf(seed, one) == KeyOf(seed, two) {
			t.Fatal("KeyOf did not")
		}
	}
}

func sum(seed uint64, b []byte) uint64 {
	d := xxhash.NewWithSeed(seed)
	d.Write(b)
	return d.Sum64()
}

// inverse is that of an odd number modulo 2^64, by Newton's method.
func inverse(a uint64) uint64 {
	x := a
	for range 6 {
		x *= 2 - a*x
	}
	return x
}
