// Package feed keeps copies of one cache's digest in step over any carrier of bytes: a
// message bus, a log, a web server. It decides what to send and what to make of
// what comes; it has no clock, no connection and no goroutine. Package gossip is the
// whole of it, with membership, many sources and its own transport.
//
// A [Publisher] turns the cache's [digest.CountingFilter] into messages for everybody
// ([Publisher.Next]) and answers who has missed some ([Publisher.Since]). A [Replica]
// takes messages in any order, lost, repeated or damaged ([Replica.Handle]), and says
// what it lacks ([Replica.Needs]). The messages are those of digest/FORMAT.md.
//
// Neither knows who sent a message: where strangers can write to the carrier, sign what
// is sent. A message is held in memory as a whole: see [digest.Limits].
package feed
