// Package squid reads and writes cache digests of version 5, in which Squid proxies
// advertise their contents to each other: a Bloom filter of four hashes, which are the
// words of one MD5 sum.
//
// It does not transport digests. Use it to run a cache beside Squids; among your own
// caches, package digest has a tenth of the false positives, and deltas.
//
// Start with [Read] for a digest from a Squid, and with a [Builder] for a digest for Squids. A
// [Digest] is immutable and safe to share; a Builder belongs to one goroutine. Both keep no
// reference to the bytes that they are given.
//
// FORMAT.md describes the format and its pitfalls. Read refuses whatever a Squid refuses,
// and two headers that crash a Squid; a Builder cannot write those two.
//
// The package is promised to nobody: it has what peer needs beside Squids, and changes with that.
package squid
