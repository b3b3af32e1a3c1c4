package digest

import (
	"encoding/binary"
	"math/bits"
	"testing"
)

// TestXXH64: the published vectors of the hash that makes keys.
func TestXXH64(t *testing.T) {
	for _, c := range []struct {
		seed uint64
		name string
		want Key
	}{
		{0, "", 0xef46db3751d8e999},
		{0, "a", 0xd24ec4f1a98c6e5b},
		{0, "abc", 0x44bc2cf5ad770999},
	} {
		if got := KeyOfString(c.seed, c.name); got != c.want {
			t.Errorf("KeyOfString(%d, %q) = %016x, want %016x", c.seed, c.name, got, c.want)
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
		t.Error("SeedFrom returns one seed for two secrets")
	}
	if seedTag(0) != 0 || seedTag(1) == seedTag(2) {
		t.Error("seedTag returns one tag for two seeds")
	}
}

// TestTwinsUnderEverySeed shows what the security notes say: two names of 16 bytes that have
// one key under any seed. They are found by inverting one round of XXH64.
func TestTwinsUnderEverySeed(t *testing.T) {
	one, two := twins("GET /a/b", "/c/d/efg")
	r := random(1)
	for range 1_000 {
		if seed := r.Uint64(); KeyOf(seed, one) != KeyOf(seed, two) {
			t.Fatal("the two have different keys")
		}
	}
}

// twins returns a name made of two words of eight bytes, and another that XXH64
// cannot tell from it under any seed. In the first word it makes a difference
// that the rotation by 27 and the multiplication by an odd number leave in the
// top bit alone; the second word cancels that.
func twins(first, second string) (one, two []byte) {
	const (
		prime1 = 0x9e3779b185ebca87
		prime2 = 0xc2b2ae3d27d4eb4f
	)
	round := func(word uint64) uint64 { return bits.RotateLeft64(word*prime2, 31) * prime1 }
	undo := func(hash uint64) uint64 { return bits.RotateLeft64(hash*inverse(prime1), -31) * inverse(prime2) }
	a := binary.LittleEndian.Uint64([]byte(first))
	b := binary.LittleEndian.Uint64([]byte(second))
	one = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, a), b)
	two = binary.LittleEndian.AppendUint64(nil, undo(round(a)^1<<36))
	two = binary.LittleEndian.AppendUint64(two, undo(round(b)^1<<63))
	return one, two
}
