// Package gossip keeps the peers of a cluster informed of what each of them holds. It joins
// them by memberlist, publishes this peer's digest to the others, keeps replicas of theirs,
// and says at every miss which peers probably have the object.
//
// Start with [Config] and [New], then [Node.Join]. Note in [Node.Holdings] what this peer
// holds. [Node.Candidates] answers from memory without waiting for anything;
// [Node.CandidatesOfAll], [Node.CandidatesOfAny] and [Node.CandidatesByPrefix] do so for
// several keys at once. A candidate is a hint, which may be wrong. Package sibling asks
// candidates, and keeps a record of how they do.
//
// PROTOCOL.md specifies what travels. With a secret everything between peers is
// authenticated and encrypted; without one, everybody who reaches the port is trusted.
// Holders of the secret trust each other: see section 10 there.
//
// The secret, and with it the seed that keys are hashed under, can be changed while
// the cluster runs: see [Node.SetSecrets] and [Holdings.Reseed]. So can the geometry of a
// filter: see [Holdings.Replan] and [digest.CountingFilter.Rebuild].
//
// Slices in a Config are copied, or only read during New; the holdings are
// shared with the caller by design. A [Node] is safe for concurrent use. It logs
// through slog and has no global state, so that many can run in one process.
package gossip
