// Package squid lets a peer and Squids find each other's objects by cache digests, in the format of
// package digest/squid.
//
// [Neighbours] hold the digests of Squids, each fetched when the Squid makes a new one, and find the
// Squids that may hold the object of a lookup. Package sibling sends the lookup requests and tracks
// the Squids' health. In the other direction, a [Publisher] serves the digest of this peer's store
// in Squid's format, and package proxy answers the lookup requests of Squids.
package squid
