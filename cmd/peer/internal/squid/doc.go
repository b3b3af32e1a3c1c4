// Package squid lets a peer find the objects of the Squids beside it by their
// cache digests, whose format package digest/squid has.
//
// [Neighbours] keep the digests of Squids, each fetched when the Squid makes a
// new one, and say which of them may hold what a question is for; package sibling
// asks.
package squid
