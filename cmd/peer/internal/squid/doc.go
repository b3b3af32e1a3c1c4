// Package squid lets a peer and the Squids beside it find each other's objects by
// cache digests, whose format package digest/squid has.
//
// [Neighbours] keep the digests of Squids, each fetched when the Squid makes a
// new one, and say which of them may hold what a question is for; package sibling
// asks. A [Publisher] is the other direction: the digest of this peer's store, such
// that Squids can read it. What belongs to answering their questions is the request
// path's, in package proxy.
package squid
