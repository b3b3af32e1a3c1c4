// Package engine is a shared HTTP cache (RFC 9111) over a [bodies.Store]: that of package httpcache, whose Member
// is for the programs of others, and of peer, which uses it as it is. Start with [New].
//
// The package is promised to nobody: it changes with these two, whatever the version of the module.
//
// [Cache.Serve] answers one request: from the store, by validating a stale copy,
// from a sibling, or from the origin. It stores the response if that is allowed. Concurrent misses
// for one response share one fetch, and its body while it arrives.
//
// Package rfc9111 has the rules of a shared cache: which responses may be stored, how long they
// are fresh, and what selects and validates them.
//
// # A fetch
//
// A hit is [Cache.Serve], get and hit (serve.go), and serveStored (respond.go). A sibling's request is getHere in
// place of get, a miss fetch in place of hit.
//
// A fetch (run, fetch.go) gets a response that is not in the store or must be validated. What it does with each kind of
// answer is a function of its own (steps.go, receive.go). The request
// that begins it is its leader. Requests for the same response that arrive while it is under way,
// siblings' included, are its followers (coalesce.go, arriving.go): they get the same bytes as they
// arrive. A response that can't be shared goes to the leader alone. Its URL is then remembered
// (hit-for-miss), so that for some time no request for it waits for another. The states of a fetch and
// of its body are those of states.go.
//
//	siblings, best first, then the origin
//	                │
//	             asking ──no answer──▶ failed: a stale copy, or the error
//	                │ a header
//	                ├──304───────────▶ confirmed: the stored response, freshened
//	                ├──not shareable─▶ handed over: to the leader, as it arrives
//	                ▼
//	            receiving ──────────▶ delivered: leader and followers read along,
//	             │  ▲   │             and after 250 ms it is advertised to siblings
//	 its source  │  │   └──complete───▶ stored, unless it was invalidated meanwhile
//	 ends or     │  │                   or the disk fails: that costs the next hit
//	 is slow     ▼  │
//	            attempt to find another source, from byte n on
//	                │
//	                └──none found────▶ cut
//
// A response of the origin is delivered with its header; so is a sibling's that has
// a strong validator. Any other response of a sibling is delivered when all of it or
// 64 KiB have arrived: until then the next source can begin from the start. A client is sent the
// header together with the first byte (respond.go). If the body is cut before that byte,
// the request begins another fetch and uses its header, provided that the origin has another
// representation by now or there is no strong validator. Otherwise the client gets a
// stale copy, if one may be served while the origin can't be reached, or an error.
//
// A body (resume.go) is one stream of bytes from one source after another. A new source
// (attempt.go) begins at byte n if a strong validator shows that it has the same
// representation (Range and If-Range); if a sibling was a source before, at the beginning of
// the last block, which is compared, since siblings may repeat a validator. Without a strong
// validator it begins at byte 0, and its bytes are compared with those delivered, and with
// those that the old source sends meanwhile. A range that is passed on is not kept, but its
// checksums are, so that a new source can be compared from the first byte of the range. An
// attempt to find a source is made
//   - when the source ends within the body, which then waits for the attempt;
//   - when the source makes too little progress (floor.go): it was waited for a second longer
//     than its bytes take at its floor, or half a second if it is a sibling. The floor is 128 KiB/s for a sibling, and 500 bytes/s for the
//     origin and for a sibling that is itself receiving the body. The attempt runs beside the
//     source, and the first to reach the next byte continues the body. An origin with a single
//     client has no floor, since there is no better source. It may pause for 10 s; without a
//     strong validator until the time between bytes is over, since the whole body would be
//     requested again.
//
// An attempt asks the remaining siblings and the origin. A slow source
// is not ended if no other is faster: then the attempt is fruitless. An attempt beside a source
// also ends when that has sent another 256 KiB.
//
// There is one attempt at a time, however many clients wait. The pause between two fruitless ones
// doubles. New requests do not join a body that makes no progress. They wait for the attempt, and as soon
// as the origin has shown another representation, they begin another fetch, which asks no sibling.
// A slow sibling that was sending the old one is then ended, and so are the answers to clients
// that have a part of it, since it may be a lie. The finding counts as a comparison (compare.go).
//
// Slow clients have no floor: what a client does not read is in the store, or waits. The body of
// an event stream or of gRPC that is passed on may pause until its client leaves.
//
// If a body can't be read from the disk in the middle of an answer, it is fetched
// again and the answer continues where it was (finish.go). The same is done for a client that
// is too slow: a body that can't be stored is kept in memory until all have read it, but
// a client that keeps others waiting for a second is left behind.
//
// # Answers of siblings
//
// A request to a sibling names the cluster's invalidations that concern the object, and a sibling
// that has not applied them has no answer (package invalidation). So whatever a sibling sends is
// newer than those, and ages are not compared.
//
// A sibling's body comes with the checksums of its blocks (statement.go). No byte that differs
// from them is delivered or stored. A sibling's answer is served for Config.SiblingMaxAge at
// most; validating it or passing it on does not extend that ([given]). One answer in
// Config.Compare is later compared with the origin's (compare.go).
//
// # Slices
//
// A large object is kept in slices, each a stored response of its own (slices.go). A request whose answer
// begins in a slice is a request for that slice; what follows it is sent from further ones, each by a request of
// the cache itself.
//
// # Identity
//
// A stored response has an identity ([rfc9111.Identity]): its URL and the request fields that
// select it among the variants. Store keys are identities; hashed under the cluster's seed they are
// digest keys. So another variant of a URL is another key, and not a false hit.
//
// To look up a varying response one must know by which fields it varies. A cache learns that from
// the first response to a URL. Before that it guesses: it also looks up identities by the fields
// that responses to other URLs of the same host vary by, and by "Vary: Accept-Encoding". A wrong
// guess finds nothing and costs no message, since these lookups are local.
package engine
