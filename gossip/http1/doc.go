// Package http1 is a client of HTTP/1.1 for caches that others share (RFC 9112). It is for the programs of this module:
// its names are promised to nobody.
//
// A [Transport] is an [http.RoundTripper]. It writes a request, and reads and judges the answer, in the goroutine that
// called it; only the body of a request has a goroutine of its own. What is not exactly one message is refused, and
// its connection closed, since whoever has the next answer of a connection must not get what another one left there:
// see [ErrMalformed]. A connection is kept only once its last answer was read to its end and nothing came after it, and
// before it is used again it is looked at: what has arrived meanwhile is nobody's answer.
//
// An origin's name is looked up again while there is traffic, see [Transport.Addresses]. Requests that a server
// agrees to take by HTTP/2 go to the client of package net/http, over connections that were made here.
package http1
