// Package node assembles a running peer: the store and its digest, gossip with the other peers,
// the request path and the admin listener.
//
// Start from [Start]; assemble.go puts the parts together. An object reaches another peer's client
// as follows. Package store lists it, and the node adds its key to the holdings, a counting filter.
// Package gossip publishes that filter and its changes, and the other peer keeps a replica in its
// index. On a miss there, package httpcache calls [sibling.Client], which sends a request to the peers
// that the locator names. Package proxy answers it here, from the store.
//
// Several nodes can run in one process; they share nothing.
package node
