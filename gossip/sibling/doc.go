// Package sibling asks the other caches of a cluster for an object that their
// digests say they hold.
//
// A [Locator] turns the identity of an object into candidates, best first; a
// [Client] asks them one after another with an absolute-form GET under
// "Cache-Control: only-if-cached" and a short deadline to the first byte. A
// sibling that lacks the object, or holds it stale, answers 504: a false hit.
// Everything that happens to a question is told to the Locator, so that a peer
// that refuses connections stops being a candidate at once.
//
// The package does no caching and knows no digest. A digest is a hint: whatever
// a sibling does, the caller can still go to the origin.
package sibling
