// Package control carries requests between peers that are not for objects: for their statistics, and
// for what they hold.
//
// A control request is a POST to [Path] at the address where a peer serves siblings. It is signed
// with a key derived from the cluster's secret, and names its receiver. It is valid once and for
// [Window], so that a replayed copy is refused. The answer is signed as well. TLS between peers
// encrypts both; this package does not.
//
// Without a secret anybody can derive the key. Requests are then answered only from the addresses of
// live members: a stranger who reaches a cache's port must not learn what the cache holds and which
// peers it knows.
//
// [Control.Handler] is the receiving end, [Control.Call] the sending one. Start from [New].
package control
