// Package memnet is a network inside one process, for tests. It has hosts with IP addresses, packet
// sockets that lose, delay, reorder and duplicate, and streams that may be slow, stall while a link is
// cut or a host frozen, and break when a host dies or after a number of bytes.
//
// It does not simulate congestion: streams do not share a link's rate. It does not corrupt bytes, since
// the checksums of a real network detect that. Start with [New] and [Network.Host]. A [Host] is a
// gossip.Network, and its listeners and connections work with net/http.
//
// All blocking is by condition variables and timers of package time, so that blocked goroutines are
// durably blocked under testing/synctest, and minutes pass in virtual time. Everything is safe for
// concurrent use.
package memnet
