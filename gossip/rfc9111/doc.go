// Package rfc9111 has the rules of a shared HTTP cache (RFC 9111 and related RFCs), as
// functions of requests, responses and times: they do no I/O, read no clock and keep
// nothing. A cache over any store can be built on them.
//
// A [Response] describes a response without its body. [NewResponse] makes one when a
// response arrives. A cache then calls, in this order:
//
//   - when the response arrives: [Response.Storable] (section 3) and [Response.Useful]; for
//     the key, [CanonicalURL], [VaryFields] and [Identity] (sections 2 and 4.1);
//   - when a request arrives: [RequestDirectives] (section 5.2.1), [Response.Age] (section
//     4.2.3) and [Response.Reuse] (section 4), which decides between serving and
//     validating the stored response;
//   - to serve it: [Response.PartFor], for conditions and ranges (section 4.3.2),
//     and [Response.Fill] for the header, Age included;
//   - to validate it: [Response.Conditions] for the request, and for a 304
//     [Response.ConfirmedBy] and [Response.Freshened] (sections 4.3.1, 4.3.4 and 3.2);
//   - when the origin fails: [Response.StaleOnError] (section 4.2.4, RFC 5861);
//   - after an unsafe request: [Invalidated] (section 4.4).
//
// [Status] writes and reads Cache-Status (RFC 9211). Two types have state: [Variants] is an
// index of the Vary fields of the responses in a store, and [Hints] guesses those of others.
//
// CONFORMANCE.md beside this file lists the requirements that are tested, in two caches that
// use this package, the decisions that the RFCs leave open, and what is not implemented.
//
// Headers must have canonical names, and must not change while a Response refers to them. All
// functions and methods are safe for concurrent use.
package rfc9111
