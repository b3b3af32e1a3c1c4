// Package cache is a shared HTTP cache (RFC 9111) over a [store.Store].
//
// [Cache.Serve] answers one request: from the store, by validating a stale copy,
// from a sibling, or from the origin, and stores what it may. Concurrent misses
// for one response share one fetch, and its body while it arrives.
//
// The rules of a shared cache (RFC 9111) are this package's own: what may be stored
// and for how long it is fresh (freshness.go, directives.go), what selects a stored
// response (vary.go), when and how it is validated (validate.go). The rows of
// ../proxy/CONFORMANCE.md, each of which is run, prove them.
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
