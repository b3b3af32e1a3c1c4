// Package node assembles a running peer: the store and the digest of what it
// lists, gossip with the other peers, the request path and the admin listener.
//
// Start from [Start]. Several nodes run in one process without knowing of each
// other.
package node
