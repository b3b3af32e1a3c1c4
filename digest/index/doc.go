// Package index finds which of many peers may hold a key, given their digests. Its results are exactly
// those of all their filters, for about the cost of one.
//
// It is neither a cache nor a transport: the caller passes each peer's digest, or a delta of it, to
// the index. Start with [New]. [Index.Set] and [Index.Apply] store a peer's filter, [Index.Lookup]
// looks up one key, and [Index.Prefixes] finds the peers with the longest beginnings of a chain of keys. An
// Index keeps a reference to the last filter of each peer, and no slice of the caller's.
//
// Sparse filters share a table in which all entries for a key are in one cache line. A key held costs
// about three bytes, less if many peers hold the same. Filters that are denser than their positions'
// entries would be are looked up one by one.
//
// Terms inside the package: each peer has a place, a number that another peer may get later. The table
// consists of segments, and a segment of lines. In a line, a code stands for a position of a peer's
// filter. The shape of the table determines the codes.
package index
