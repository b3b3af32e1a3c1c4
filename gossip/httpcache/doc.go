// Package httpcache is a cache that several processes share, for a program that has none: for its handlers, its
// clients or its values.
//
// Start with [NewMember]: a [Member] finds objects in its store, at the other processes of the cluster, or at their
// source. It follows the rules of a shared HTTP cache (RFC 9111; package rfc9111), and is the cache of peer. The store
// is that of package memstore or package diskstore. A program that has a cache takes package sibling instead.
//
// Names, URLs and headers that are passed to a Member are only read. What it returns must not be changed unless its
// documentation says so: callers share it.
//
// A value is a response to GET, under [ValueURL] of its name. So values and responses are stored, shared, and
// invalidated ([TargetOf]) in one way. The way of a request is described in package engine.
package httpcache
