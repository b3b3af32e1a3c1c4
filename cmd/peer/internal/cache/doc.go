// Package cache is a shared HTTP cache (RFC 9111) over a [store.Store].
//
// [Cache.Serve] answers one request: from the store, by validating a stale copy,
// from a sibling, or from the origin, and stores what it may. Concurrent misses
// for one response share one fetch, and its body while it arrives.
//
// The semantics of storing and validating come from the httpcache library,
// which is a private cache with whole bodies in memory; it is wrapped on both
// sides (engine.go). Inside, its upstream sees to the rules of a shared cache:
// s-maxage, private, Authorization, Vary, CDN-Cache-Control. Outside, this
// package chooses the variant, serves hits, ranges and conditional requests, and
// streams the bodies, which the library never sees.
//
// # Identity
//
// A stored response is known by its identity: "GET", a space and the canonical
// absolute URL; if the response has a Vary field, then for each field that it
// names, in alphabetical order, a line with the name and the request's
// normalised value. Store keys are identities, and hashed under the cluster's
// seed they are digest keys. So another variant of a URL is another key, and not
// a false hit.
//
// To look up a varying response one must know by which fields it varies. A cache
// learns that from the first response to a URL that it sees; before, it guesses:
// it also looks for the identities under the rules that it has met for other
// URLs of the same host, and under "Vary: Accept-Encoding". A wrong guess finds
// nothing and costs no message, since these are local look-ups.
package cache
