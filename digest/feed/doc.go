// Package feed replicates one cache's digest over a transport of yours: a message bus, a
// log, a web server. It decides what to send and what to do with what arrives. It has no
// clock, no connection and no goroutine. Package gossip is the complete solution, with
// membership, many publishers and its own transport.
//
// Start with [NewPublisher] in the cache and [NewReplica] at its readers. The cache adds its objects to a [digest.Set]. A [Publisher] turns the set into messages for all replicas
// ([Publisher.Next]), and answers a replica that has missed some ([Publisher.Since]). A
// [Replica] takes messages in any order, even if some are lost, repeated or damaged
// ([Replica.Handle]), and says what it lacks ([Replica.Needs]). The messages are those of
// digest/FORMAT.md.
//
// Neither knows who sent a message: if strangers can write to the transport, sign the
// messages. A message is held in memory as a whole: see [digest.Limits].
package feed
