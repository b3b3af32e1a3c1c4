// Package exchange keeps the digests of a cluster's peers in step: what to say to
// whom, what to ask for, what to believe. PROTOCOL.md, one directory up, is its
// specification.
//
// It has no sockets, no goroutines and no clock. An [Engine] is fed what happened
// (its own digest changed, a member came or went, a message arrived, a fetch
// ended, time passed) and asked with [Engine.Drain] what to do about it. The same
// code so runs under package gossip, in virtual time, and in a simulation of ten
// thousand peers; with one seed and one order of inputs it does the same every
// time.
//
// The messages of the protocol are here as well, with decoders that survive any
// bytes: [Advert], [Meta], [Hello], [Welcome], [Get], [Answer], [DecodeVector].
//
// What is heard flows one way through it, a step a file: an advert or a vector is
// heard (hear.go, sync.go), what it tells of is wanted and fetched from somebody
// (fetch.go), the answer is read (answer.go) and judged (outcome.go, accept.go), and
// becomes the replica and an [Update] for lookups. What is published goes the other:
// publish.go, advert.go, step.go, and serve.go for those who ask.
//
// Programs need of it what package gossip's API names: [Publishing], [Event],
// [Version], [Stats] and the errors. The rest is for those who carry out the exchange
// in another way than package gossip, and follows the protocol when that changes.
//
// An Engine is not safe for concurrent use. Filters, deltas and answers that it
// hands out are immutable or lock themselves, so that encoding and decoding, the
// expensive part, can happen elsewhere at the same time.
package exchange
