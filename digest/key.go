package digest

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// A Key stands for one object: 64 bits, uniformly distributed, made by [KeyOf]
// under the cluster's seed. Every peer of a cluster must make the same Key of
// the same object.
type Key uint64

// KeyOf hashes an object's identity under the cluster's seed. The hash is
// SipHash-2-4 (Aumasson and Bernstein, 2012), which a stranger who does not
// know the seed cannot steer; see the package's security notes. identity is
// only read. Safe for concurrent use.
func KeyOf(seed uint64, identity []byte) Key {
	return Key(sipHash(seed, seed^sipSpread, identity))
}

// KeyOfString is [KeyOf] for a string, without copying it.
func KeyOfString(seed uint64, identity string) Key {
	return Key(sipHash(seed, seed^sipSpread, unsafe.Slice(unsafe.StringData(identity), len(identity))))
}

// SeedFrom derives the cluster's seed from its secret, of which the caller
// should provide at least 16 random bytes. An empty secret gives seed 0, which
// means that there is none: anybody may then choose objects that pollute filters.
func SeedFrom(secret []byte) uint64 {
	if len(secret) == 0 {
		return 0
	}
	h := sha256.New()
	h.Write([]byte("summarycache seed 1"))
	h.Write(secret)
	return max(1, binary.LittleEndian.Uint64(h.Sum(nil)))
}

// seedTag is what the wire says of a seed: enough to notice that two peers have
// different ones, too little to find it.
func seedTag(seed uint64) uint32 {
	if seed == 0 {
		return 0
	}
	const label = "summarycache seed tag 1"
	sum := sha256.Sum256(binary.LittleEndian.AppendUint64([]byte(label), seed))
	return max(1, binary.LittleEndian.Uint32(sum[:]))
}

// sipSpread makes the second half of SipHash's key from the first.
const sipSpread = 0x5bd1e9955bd1e995

func sipHash(k0, k1 uint64, b []byte) uint64 {
	v0, v1 := k0^0x736f6d6570736575, k1^0x646f72616e646f6d
	v2, v3 := k0^0x6c7967656e657261, k1^0x7465646279746573
	last := uint64(len(b)) << 56
	for ; len(b) >= 8; b = b[8:] {
		word := binary.LittleEndian.Uint64(b)
		v3 ^= word
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
		v0 ^= word
	}
	for i, c := range b {
		last |= uint64(c) << (8 * i)
	}
	v3 ^= last
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0 ^= last
	v2 ^= 0xff
	for range 4 {
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	}
	return v0 ^ v1 ^ v2 ^ v3
}

func sipRound(v0, v1, v2, v3 uint64) (uint64, uint64, uint64, uint64) {
	v0 += v1
	v2 += v3
	v1 = bits.RotateLeft64(v1, 13) ^ v0
	v3 = bits.RotateLeft64(v3, 16) ^ v2
	v0 = bits.RotateLeft64(v0, 32)
	v2 += v1
	v0 += v3
	v1 = bits.RotateLeft64(v1, 17) ^ v2
	v3 = bits.RotateLeft64(v3, 21) ^ v0
	v2 = bits.RotateLeft64(v2, 32)
	return v0, v1, v2, v3
}

// mix is the finaliser of splitmix64: a bijection in which every input bit moves
// every output bit.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// golden is 2^64 divided by the golden ratio, made odd.
const golden = 0x9e3779b97f4a7c15
