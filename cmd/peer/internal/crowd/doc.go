// Package crowd lets peers that miss the same object at the same time find each
// other, before any digest can tell: for each key one of the living members is its
// home, by rendezvous hashing, and remembers for a moment who was the first to go
// and fetch it. Whoever misses asks the home, by a GET that has the key and not
// the URL, and learns who is ahead of it. It is a hint like any: the members that
// peers know of differ at times, and homes forget.
//
// Who is told of nobody fetches; who is told of somebody waits for that one. So
// nobody waits for one that waits.
//
// It costs two messages for each miss that no digest answers, of some 150 bytes in
// all, and their round trip; that is why it is off unless an operator wants it.
// What it saves are the fetches of what is missed at two peers within the time that
// the origin takes and a digest to get around: most of a crowd's, and few of a mixed
// load's. Both are measured by tests: TestCrowdAtOnce of package node for a crowd,
// TestTwoPeersReachTheirTargets of cmd/peer for a load in which all fetches but
// 0.3 % are needed anyway, and a message for each would be several times what the
// digests cost.
//
// Start from [New]. A [Crowd] finds who fetches ([Crowd.Fetching]) and is the
// handler that answers the others.
package crowd
