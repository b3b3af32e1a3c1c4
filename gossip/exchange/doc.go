// Package exchange keeps the digests of a cluster's peers in step: what to say to
// whom, what to ask for, what to believe. PROTOCOL.md, one directory up, is its
// specification.
//
// It has no sockets, no goroutines and no clock. The caller tells an [Engine] what happened
// (its own digest changed, a member came or went, a message arrived, a fetch
// ended, time passed) and gets from [Engine.Drain] what to do. So the same
// code runs under package gossip, in virtual time, and in a simulation of ten
// thousand peers. With the same seed and the same inputs it does the same every
// time.
//
// The messages of the protocol are here as well, with decoders that survive any
// bytes: [Advert], [Meta], [Hello], [Welcome], [Get], [Answer], [DecodeVector].
//
// Others' digests flow through these files: an advert or a vector arrives
// (hear.go, sync.go); the version that it announces is fetched from a peer
// (fetch.go); the answer is decoded (answer.go) and judged (outcome.go, accept.go); it
// becomes the replica (replica.go) and an [Update] for lookups. The peer's own digest goes
// through publish.go, advert.go and step.go, and through serve.go to peers that send a get.
//
// Most programs need only what package gossip's API mentions: [Publishing], [Event],
// [Version], [Stats] and the errors. The rest is for those who carry out the exchange
// in another way than package gossip, and follows the protocol when that changes.
//
// An Engine is not safe for concurrent use. Filters, deltas and answers that it
// hands out are immutable or lock themselves, so that encoding and decoding, the
// expensive part, can happen elsewhere at the same time.
package exchange
