// Package index answers which of many peers may hold a key, given their digests: exactly
// what all their filters would answer, for about the price of asking one.
//
// It is neither a cache nor a transport: the caller passes each peer's digest, or a delta of
// it, to the index. Start with [New]; [Index.Set] and [Index.Apply] store a peer's filter,
// [Index.Lookup] asks for one key, and [Index.AllOf], [Index.AnyOf] and
// [Index.Prefixes] ask for several at once. An Index refers to the last filter that it
// was given of each peer, and keeps no slice of the caller's.
//
// Sparse filters share a table that has everything about a key in one cache
// line. A key held costs about three bytes, less if many peers hold the same. Dense
// filters of equal geometry share rows of bits, one bit for each peer. Only dense
// filters of unusual geometry are asked one by one.
//
// Terms inside the package: a peer has a place, a number that
// another peer may get later. The table consists of segments, and these of lines,
// in which a code stands for a position of a place. The shape says how codes are made.
package index
