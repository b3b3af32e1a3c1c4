// Package index answers which of many peers may hold a key, given their digests: the
// answers of all their filters, exactly, for about the price of asking one.
//
// It is no cache and no transport: whoever receives a peer's digest, or a delta of it,
// hands it over. Start with [New]; [Index.Set] and [Index.Apply] keep a peer's filter,
// [Index.Lookup] asks for one key, and [Index.AllOf], [Index.AnyOf] and
// [Index.Prefixes] ask for several at once. An Index refers to the last filter that it
// was given of each peer, as does whoever applies deltas to it, and keeps no slice.
//
// Sparse filters share a table in which all that is known of a key is in one cache
// line; a key held costs about three bytes, less where many peers hold the same. Dense
// filters of equal geometry share rows of bits, one bit for each peer. Only dense
// filters of unusual geometry are asked one by one.
//
// The words of the inside, and of no other package: a peer has a place, a number that
// is given to another one later; the table consists of segments, and these of lines,
// in which a code stands for a position of a place; the shape says how codes are made.
package index
