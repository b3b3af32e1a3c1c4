// Package squid reads and writes cache digests of version 5, by which the Squid
// proxies tell each other what they hold: a Bloom filter of four hashes, all of
// them words of one MD5 sum.
//
// It is no way to spread digests, and none of our own: package digest does the
// same in a tenth of the false positives and with deltas. This package is there
// so that a cache can live beside Squids.
//
// Start with [Read] for a digest that came from a Squid and with a
// [Builder] for one that is meant for it. A [Digest] is immutable and safe to
// share; a Builder belongs to one goroutine. Both keep nothing of the bytes they
// were given.
//
// The format and its traps are in FORMAT.md. Decoders refuse whatever a Squid
// refuses, and two headers that a Squid takes and dies of; a Builder cannot
// express those two.
package squid
