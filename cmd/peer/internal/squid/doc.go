// Package squid lets a peer and the Squids beside it find each other's objects by
// cache digests, whose format package digest/squid has.
//
// [Neighbours] keep the digests of Squids, each fetched when the Squid makes a
// new one, and say which Squids may hold the object of a question; package sibling
// asks them, and keeps the record of their health. A [Publisher] is the other direction: it
// serves the digest of this peer's store in a form that Squids read. Package proxy answers
// the Squids' questions.
package squid
