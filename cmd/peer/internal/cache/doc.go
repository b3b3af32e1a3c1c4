// Package cache is a shared HTTP cache (RFC 9111) over a [store.Store].
//
// [Cache.Serve] answers one request: from the store, by validating a stale copy,
// from a sibling, or from the origin, and stores what it may. Concurrent misses
// for one response share one fetch, and its body while it arrives.
//
// The rules of a shared cache, what may be stored, for how long it is fresh, what
// selects and what validates it, are package rfc9111's.
//
// # A fetch
//
// What is not in the store, or must be validated, is got by a fetch (fetch.go). The
// request that begins it is its leader. Requests for the same response that come
// while it is under way are its followers, siblings' questions among them
// (coalesce.go, arriving.go): they get the same bytes as they arrive. A response
// that can't be shared goes to the leader alone, and its URL is remembered
// (hit-for-miss), so that no request for it follows another for some time.
//
//	siblings, best first, then the origin
//	                │
//	             asking ───nobody───▶ failed: a stale copy, or the error
//	                │ a header
//	                ├──304───────────▶ confirmed: the stored response, freshened
//	                ├──not to share──▶ handed over: to the leader, as it comes
//	                ▼
//	            receiving ──────────▶ delivered: leader and followers read along,
//	             │  ▲   │             and after 250 ms siblings are told
//	 its source  │  │   └──all of it──▶ stored, unless it was invalidated meanwhile
//	 ends, pauses│  │                   or the disk fails: that costs the next hit
//	 or crawls   ▼  │
//	            attempt: who goes on at byte n?
//	                │
//	                └──nobody────────▶ cut
//
// A response of the origin is delivered with its header; so is a sibling's that has
// a strong validator. Any other of a sibling is delivered when it is whole or 64 KiB
// of it are here, since until then the next source can begin anew. A client is sent
// the header together with the first byte (respond.go): a body that is cut before
// that is answered by another fetch, header and all, if the origin has another
// representation by now or no strong validator would tell; or else by a stale copy, where that
// may stand in for an origin which can't be reached; or else by an error.
//
// The body (resume.go) is one stream of bytes from one source after another. The
// next one (attempt.go) begins at byte n if a strong validator shows that it has the same
// representation (Range and If-Range), or begins at byte 0, and what it gives up to
// byte n is compared with what was delivered, and with what comes meanwhile. Of a range that
// is passed on, which nobody keeps, the checksums are kept to compare it from its own first
// byte on. An attempt is made
//   - when the source ends within the body: the body waits for it;
//   - when the source gave nothing for a second: beside it, and the first to come to
//     the next byte goes on. An origin with a single client may pause for 10 s, since
//     nobody else lost a byte by it; and without a strong validator until its time
//     between bytes is over, since it would be asked for the whole once more;
//   - when the rest would take far longer than a new answer of the origin. An origin is held
//     against its own usual pace, every 10 s at most, and if more than one client waits;
//   - when another fetch has brought the same into the store meanwhile.
//
// It looks into the store first: a copy with the same strong validator has the rest, be it
// stale. Then it asks the siblings that are left and the origin, and last all siblings for a
// stale copy with that validator.
//
// There is one attempt at a time, however many wait. Between two that brought
// nothing the pause doubles. New requests join no body that stands still: they wait
// for the attempt, and if the origin has another representation by now, they begin
// another fetch, which asks no sibling.
//
// A body that turns out unreadable on disk in the middle of an answer is fetched anew,
// and the answer goes on where it was (finish.go). So is the rest for a client that
// others would have to wait for: a body that can't be stored is kept in memory until
// all have read it, but for those that keep another waiting for a second.
//
// # What siblings say
//
// A sibling's body comes with the sums of its blocks (statement.go), and nothing is
// delivered or stored that does not fit them. Its word is good for Config.SiblingMaxAge;
// what was given ([given]) keeps its term however often it is confirmed or passed on.
// One answer in Config.Compare is compared with the origin's afterwards (compare.go).
//
// # Identity
//
// A stored response is known by its identity ([rfc9111.Identity]): its URL and what
// selects it among the variants. Store keys are identities, and hashed under the
// cluster's seed they are digest keys. So another variant of a URL is another key,
// and not a false hit.
//
// To look up a varying response one must know by which fields it varies. A cache
// learns that from the first response to a URL that it sees; before, it guesses:
// it also looks for the identities under the rules that it has met for other
// URLs of the same host, and under "Vary: Accept-Encoding". A wrong guess finds
// nothing and costs no message, since these are local look-ups.
package cache
