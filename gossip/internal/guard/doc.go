// Package guard stands between the network and memberlist. A [Screen] passes on only what memberlist itself could
// have sent, and only what this peer may believe (PROTOCOL.md 10). [Life] knows which probes need not be sent
// (2.4). [Shorten] gives probes a short form (2.3).
//
// It has no sockets, and starts no goroutine but timers. It knows no member itself: see [Members].
package guard
