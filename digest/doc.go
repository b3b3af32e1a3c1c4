// Package digest represents what a cache holds as a Bloom filter that is large
// and sparse, small in memory, and on the wire as small as information theory
// allows.
//
// It is not a set: a [Filter] may say yes for a key that is absent. It never says
// no for one that was present when it was frozen. It is no transport either:
// package gossip spreads digests, and package digest/feed helps those who have a carrier.
//
// Start with a [CountingFilter], which follows one cache as objects come and go.
// [CountingFilter.Advance] freezes it into a Filter, which is immutable and safe
// to share. [Diff] tells two filters of one cache apart, a [History] keeps such
// [Delta]s, and package index asks the filters of many peers at once. A peer
// is sent a snapshot, the encoding of a Filter, and then deltas. [OpenFilter] asks a
// snapshot in pieces for one key where it lies. [Filter] and
// Delta append their encodings to the caller's slice, and decoders keep nothing
// of the bytes they were given. [GeometryFor] makes a [Geometry] of the number of
// keys and a rate of false positives, and [Plan] one of what an operator knows and
// wants.
//
// The ideas are those of Fan, Cao, Almeida and Broder (Summary Cache) and of
// Mitzenmacher (Compressed Bloom Filters): tune the filter as a message. His
// limit of one hash function and a huge array, sent at nearly its entropy, is
// practical here because the array is never built: positions are kept as a
// compact sorted set (section III-A), counts in a hash table, and deltas (section
// IV) are coded with the old filter as context.
//
// The encoding is specified in FORMAT.md. It is not a security boundary: a digest
// is a hint, and whoever acts on one must survive its being wrong. Decoders
// allocate no more than [Limits] says, whatever the bytes.
//
// # Security
//
// Keys are made by XXH64 under a seed that only the cluster knows. Without the
// seed nobody can choose names that fill a filter. But XXH64 is no cryptographic
// hash: pairs of names can be constructed that have one key under every seed.
// If one of a pair is cached at a peer, a request for the other causes a false
// hit, one for each such request. With the seed, names can be chosen
// that share no position, which raises the false-positive rate by 1.4 at
// m/n = 8, k = 5 and by 1.14 at 14, 2, and not at all with one hash; and names can
// be asked for that are false positives every time.
//
// Encodings reveal a tag of the seed, not the seed; a secret that can be guessed
// can be tested against it. The state hash and the checksum find mistakes, not
// lies: a peer can say of its own contents what it likes, and what it says of
// [Filter.Keys] nobody can check.
package digest
