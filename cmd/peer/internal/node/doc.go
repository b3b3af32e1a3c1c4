// Package node assembles a running peer: the store and the digest of what it
// lists, gossip with the other peers, the request path and the admin listener.
//
// Start from [Start]; assemble.go puts the parts together. An object's way to
// another peer's answer: package store lists it, which puts its key into the
// counting filter of the holdings; package gossip publishes that filter and what
// changes in it, and the other peer keeps a replica in its index. A miss there is a
// question of package cache to [sibling.Client], which asks whom the locator names,
// and is answered here by package proxy from the store.
//
// Several nodes run in one process without knowing of each other.
package node
