package digest

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// A Profile says what the identities are from which the keys of a digest are made, and by which hash:
// FORMAT.md, section 2. Digests of different profiles have nothing in common, even under one seed.
// Numbers from 128 on are for private use.
type Profile uint8

const (
	Opaque  Profile = 0 // bytes that the users of the digest have agreed on, hashed by [KeyOf]
	HTTP    Profile = 1 // method, URL and the fields that Vary selects on, by KeyOf
	Numbers Profile = 2 // block hashes and other numbers of 64 bits, by [KeyOfUint64]
	Paths   Profile = 3 // names in a content-addressed store, such as store paths, by KeyOf

	// AnyProfile, in [Limits], accepts every profile. No digest has it.
	AnyProfile Profile = 255
)

func (p Profile) String() string {
	if names := [...]string{"opaque", "HTTP", "numbers", "paths"}; int(p) < len(names) {
		return names[p]
	}
	return fmt.Sprintf("profile(%d)", uint8(p))
}

// A Key stands for one object: 64 bits, uniformly distributed, made by [KeyOf]
// under the cluster's seed. Every peer of a cluster must make the same Key of
// the same object.
type Key uint64

// KeyOf hashes an object's identity under the cluster's seed with XXH64. identity
// is only read. Safe for concurrent use; nothing is allocated.
//
// An attacker without the seed cannot choose names that fill a filter, but can construct
// pairs of names with the same key: see the package's security notes.
func KeyOf(seed uint64, identity []byte) Key {
	var d xxhash.Digest
	d.ResetWithSeed(seed)
	d.Write(identity)
	return Key(d.Sum64())
}

// KeyOfString is [KeyOf] for a string, without copying it.
func KeyOfString(seed uint64, identity string) Key {
	var d xxhash.Digest
	d.ResetWithSeed(seed)
	d.WriteString(identity)
	return Key(d.Sum64())
}

// KeyOfUint64 returns the key of an object that is known by a number: a block hash, a row's id. It is
// a bijection for each seed, so that no two numbers have the same key. A number is no key itself, even
// if it is a hash of 64 bits that others have made: small numbers, for one, share a position.
func KeyOfUint64(seed, number uint64) Key {
	return Key(mix(mix(number+golden) ^ mix(seed)))
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

// seedTag is what messages carry of a seed: enough to notice that two peers have different
// seeds, and too little to find the seed.
func seedTag(seed uint64) uint32 {
	if seed == 0 {
		return 0
	}
	const label = "summarycache seed tag 1"
	sum := sha256.Sum256(binary.LittleEndian.AppendUint64([]byte(label), seed))
	return max(1, binary.LittleEndian.Uint32(sum[:]))
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
