// Package node assembles a running peer: the store and the digest of what it
// lists, gossip with the other peers, the request path and the admin listener.
//
// Start from [Start]; assemble.go puts the parts together. An object gets into another
// peer's answer as follows. Package store lists it, which puts its key into the
// counting filter of the holdings. Package gossip publishes that filter and its
// changes, and the other peer keeps a replica in its index. On a miss there, package cache
// asks [sibling.Client], which sends a request to the peers that the locator names. Package
// proxy answers it here, from the store.
//
// Several nodes can run in one process; they share nothing.
package node
