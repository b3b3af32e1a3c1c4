// Package memnet is a network inside one process, for tests: hosts with IP
// addresses, packet sockets that lose, delay, reorder and duplicate, and streams
// that stall when a link is cut or a host frozen, crawl, and break when a host dies or
// after so many bytes.
//
// It is not a simulator of congestion: streams do not share a link's rate. It damages no
// bytes, which checksums of a real network would find. It is not for production. Start
// with [New] and [Network.Host]; a [Host] has the methods that gossip.Network
// asks for, and its listeners and connections also carry net/http.
//
// All blocking is by condition variables and timers of package time, so that
// goroutines blocked here are durably blocked under testing/synctest and a
// minute of cluster life passes in virtual time. Everything is safe for use by
// many goroutines.
package memnet
