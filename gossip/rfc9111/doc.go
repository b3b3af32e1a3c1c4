// Package rfc9111 has the rules of a shared HTTP cache (RFC 9111) and of its
// neighbours, as functions of requests, responses and times: they do no I/O, read no
// clock and keep nothing. Under them one can write a cache over any store.
//
// A [Response] is what they know of a response besides its body. [NewResponse] makes
// one when a response arrives, and a cache then asks, in this order:
//
//   - when it arrives: [Response.Storable] (section 3), [Response.Useful], and under
//     which key: [CanonicalURL], [VaryFields] and [Identity] (sections 2 and 4.1);
//   - when a request comes: [RequestDirectives] (section 5.2.1), [Response.Age] (section
//     4.2.3) and [Response.Reuse] (section 4), which says whether to serve it or to
//     validate it first;
//   - when it is served: [Response.PartFor], for conditions and ranges (section 4.3.2),
//     and [Response.Fill] for the header, Age included;
//   - when it is validated: [Response.Conditions] for the request, and for a 304
//     [Response.ConfirmedBy] and [Response.Freshened] (sections 4.3.1, 4.3.4 and 3.2);
//   - when the origin fails: [Response.StaleOnError] (section 4.2.4, RFC 5861);
//   - after an unsafe request: [Invalidated] (section 4.4).
//
// [Status] writes and reads Cache-Status (RFC 9211). [Variants] is the one type with
// state: an index of the Vary fields of what a store holds.
//
// What the RFCs leave open, what is not done, and every requirement that is tested, in
// two caches that stand on this package, is in CONFORMANCE.md beside this file.
//
// Headers are looked up by their canonical names and must not change while a Response
// has them. All functions and methods are safe for concurrent use.
package rfc9111
