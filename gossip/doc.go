// Package gossip informs the peers of a cluster of each other's contents. A node joins the cluster
// by memberlist, publishes this peer's digest, keeps replicas of the others' digests, and finds the
// peers that probably hold an object.
//
// Start with [Config] and [New], then [Node.Join]. Add this peer's objects to [Node.Holdings].
// [Node.Candidates] finds the peers that probably hold an object, from memory and without waiting. A candidate is a
// hint, which may be wrong. Package sibling sends requests to candidates, and measures how well they answer.
//
// PROTOCOL.md specifies the messages. With a secret, all traffic between peers is authenticated and
// encrypted; without one, everybody who reaches the port is trusted. Peers with the secret trust
// each other: see section 10 of PROTOCOL.md.
//
// The secret, and with it the seed for hashing keys, can be changed while the cluster runs: see
// [Node.SetSecrets] and [Holdings.Reseed]. The geometry of a filter grows with its
// contents: see [PlanHoldings].
//
// Slices in a Config are copied, or only read during New; the holdings are shared with the caller.
// A [Node] is safe for concurrent use. It logs through slog and has no global state, so that many
// can run in one process.
package gossip
