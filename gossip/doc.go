// Package gossip keeps the peers of a cluster informed of what each of them
// holds: it joins them by memberlist, publishes this peer's digest to the others,
// keeps replicas of theirs, and answers at every miss which peer probably has the
// object.
//
// Start with [Config] and [New], then [Node.Join]. What this peer holds is noted in
// [Node.Holdings] as it comes and goes. [Node.Candidates] answers from memory without
// waiting for anything, and so do [Node.CandidatesOfAll], [Node.CandidatesOfAny] and
// [Node.CandidatesByPrefix] for several keys at once; what they return are hints, and
// whoever acts on one must survive its being wrong. Package sibling asks them, and keeps
// the record of how they do.
//
// PROTOCOL.md specifies what travels. With a secret everything between peers is
// authenticated and encrypted; without one, whoever reaches the port is trusted.
// Holders of the secret trust each other: see the last section there.
//
// The secret, and with it the seed that keys are hashed under, can be changed while
// the cluster runs: see [Node.SetSecrets]. A peer changes the seed by
// [Holdings.Reseed], which rebuilds its digest under another one while it is
// published, and asks by [Node.Candidates]. The geometry of a filter changes by
// [digest.CountingFilter.Rebuild], likewise.
//
// Slices given to a Config are copied or only read during New; the holdings are
// shared with the caller by design. A [Node] is safe for concurrent use. It logs
// through slog and has no global state, so that many can run in one process.
package gossip
