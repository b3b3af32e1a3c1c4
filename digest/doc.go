// Package digest represents what a cache holds as a Bloom filter that is large
// and sparse, small in memory, and on the wire as small as a set of fingerprints
// can be.
//
// A [Filter] is not a set: it may say yes for a key that is absent, but it never says
// no for one that was present when it was frozen. Nor is the package a transport:
// package gossip distributes digests, and package digest/feed does it over a transport
// that you have.
//
// Start with a [Set], which has exactly the keys that one cache holds, and grows. It keeps a
// [CountingFilter], which is what a cache needs that has such a set already.
// [CountingFilter.Advance] freezes it into a Filter, which is immutable and safe
// to share. [Diff] returns the [Delta] between two filters of one cache, a [History]
// keeps such deltas, and package index looks a key up in the filters of many peers at
// once. A peer is sent a snapshot, the encoding of a Filter, and from then on deltas.
// [OpenFilter] looks a key up in a snapshot on a server, of which it reads a few
// kilobytes. Filter and Delta append their encodings to the caller's slice, and decoders
// keep no reference to their input. [GeometryFor] makes a [Geometry] from the number of
// keys and a false-positive rate.
//
// The ideas are those of Fan, Cao, Almeida and Broder (Summary Cache) and of
// Mitzenmacher (Compressed Bloom Filters): tune the filter as a message. His
// limit of one hash function and a huge array, sent at nearly its entropy, is
// practical here because the array is never built: positions are kept as a
// compact sorted set (section III-A), counts in a hash table, and deltas (section
// IV) are coded with the old filter as context.
//
// The encoding is specified in FORMAT.md. It is not a security boundary: a digest
// is a hint, and a program that acts on one must cope with its being wrong. Decoders
// allocate no more than [Limits] allow, whatever the bytes.
//
// # Security
//
// Keys are made by XXH64 under a seed that only the cluster knows. Without the
// seed nobody can choose names that fill a filter. But XXH64 is no cryptographic
// hash: pairs of names can be constructed that have one key under every seed.
// If one of a pair is cached at a peer, a request for the other causes a false
// hit, one for each such request. An attacker who knows the seed can choose names that
// share no position. That multiplies the false-positive rate by 1.4 at m/n = 8, k = 5
// and by 1.14 at m/n = 14, k = 2, and leaves it as it is with one hash. He can also
// request names that are false positives every time.
//
// Encodings reveal a tag of the seed, not the seed; a secret that can be guessed
// can be tested against it. The state hash and the checksum find mistakes, not lies: a peer
// can claim any contents of its own, and nobody can check its [Filter.Keys].
package digest
