// Package control carries what peers ask each other besides objects: their figures, and
// what they hold.
//
// A request is a POST to [Path] at the address where a peer answers siblings. It
// is signed under a key derived from the cluster's secret and names the peer that it
// is for. It is valid for [Window] and once, so that a copy of it does nothing. Its
// answer is signed as well. TLS between peers encrypts both; this package does not.
//
// Without a secret the key is everybody's, and requests are answered only from the
// addresses of live members: others that reach a cache's port must not be able to learn
// what it holds, and which peers it knows.
//
// Start from [New]. [Control.Handler] is the receiving end, [Control.Call] the
// sending one.
package control
