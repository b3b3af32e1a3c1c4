// Package exchange decides how the peers of a cluster keep each other's digests up to date: which
// messages to send, which versions to fetch, and which answers to accept. Its specification is
// PROTOCOL.md, one directory up.
//
// It has no sockets, no goroutines and no clock. The caller informs an [Engine] of events (the
// digest changed, a member came or went, a message arrived, a fetch ended, time passed), and
// [Engine.Drain] returns what to do. So the same code runs under package gossip, in virtual time,
// and in a simulation of ten thousand peers. Equal seeds and inputs give equal outputs.
//
// The protocol's messages are here as well, with decoders that survive any bytes: [Advert], [Meta],
// [Hello], [Welcome], [Get], [Answer], [DecodeVector].
//
// The digests of other peers pass through these files: an advert or a vector arrives (hear.go,
// sync.go); the version that it announces is fetched from a peer (fetch.go); the answer is decoded
// (answer.go) and checked (outcome.go, accept.go); it becomes the replica (replica.go) and an
// [Update] for lookups. The peer's own digest passes through publish.go, advert.go and step.go, and
// through serve.go to the peers that request it. What light peers do, which keep no digests, is in light.go;
// their questions are in question.go and holders.go.
//
// The package is promised to nobody: it changes with the protocol, whatever the version of the module. Programs
// use package gossip, whose API mentions a few names of this one ([Publishing], [Event], [Version], [Head],
// [Stats], the errors); the simulator runs the [Engine] itself.
//
// An Engine is not safe for concurrent use. Its filters, deltas and answers are immutable or have
// locks, so that the expensive encoding and decoding can run concurrently with it.
package exchange
