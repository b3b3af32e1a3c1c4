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
// # The way of a request
//
// A hit is [Cache.Serve], get and hit (request.go), and serveStored (respond.go). Any other request takes steps, each a
// function that returns the next one. A sibling's request is getHere in place of them.
//
//	look ──▶ missed ──▶ join ──▶ lead ──▶ await ──▶ send ──▶ the end
//	  ▲                  └────────────────▶┘          │
//	  └───────────────────────────────────────────────┘
//	                              nothing was sent, and the result is of no use
//
// look finds a fresh response in the store, and sends it. missed decides what is requested: a validation, the whole or a
// slice. A range that neither answers is passed to the origin. join follows the fetch of the same response that is under
// way (coalesce.go); without one, lead begins a fetch. await waits for its result, send sends that. Where nothing can be
// sent, staleOrError sends a stale copy or the error.
//
// A fetch has one source, an answer may have several fetches. If the body of an answer ends before the answer does, the cache
// requests the rest of itself by the same steps (rest.go): after the source broke off, after a bad block of the disk, for
// a client that was too slow for a body that is not stored, and for each slice but the first. What comes is of the same
// version if a strong validator says so, or if its beginning has the checksums of what was sent; otherwise the answer is cut.
// A client is sent the header together with the first byte. If the body breaks off before that, the request looks again,
// and its client gets whatever version there is by then.
//
// An answer for one client alone is not kept: it is cut where its source breaks off.
//
// # A fetch
//
// A fetch (run, fetch.go) gets a response that is not in the store or must be validated. What it does with each kind of
// answer is a function of its own (steps.go, receive.go). The request
// that begins it is its leader, and runs it itself where it may stay without its client (here.go).
// Requests for the same response that arrive while it is under way,
// siblings' included, are its followers (coalesce.go, arriving.go): they get the same bytes as they
// arrive. A response that can't be shared goes to the leader alone. Its URL is then remembered
// (hit-for-miss), so that for some time no request for it waits for another. The states are those of states.go.
//
//	siblings, best first, then the origin
//	                │
//	             asking ──no answer──▶ failed: a stale copy, or the error
//	                │ a header
//	                ├──304───────────▶ confirmed: the stored response, freshened
//	                ├──not shareable─▶ handed over: to the leader, as it arrives
//	                ▼
//	            receiving ──────────▶ delivered: leader and followers read along,
//	                │                   and after 250 ms it is advertised to siblings
//	                ├──complete──────▶ stored, unless it was invalidated or reloaded meanwhile
//	                │                   or the disk fails: that costs the next hit
//	                └──broke off─────▶ cut: its clients go on with another fetch
//
// A response of the origin is delivered with its header; so is a sibling's that has
// a strong validator. Any other response of a sibling is delivered when all of it or
// 64 KiB have arrived: until then the next source can begin from the start.
//
// A source that makes too little progress (receiving.go) gets another fetch beside it (overtake.go), from the sources that
// remain. It was waited for a second longer than its bytes take at its floor, or half a second if it is a sibling. The floor
// (floor.go) is 128 KiB/s for a sibling, and 500 bytes/s for the origin and for a sibling that is itself receiving the body.
// As soon as the other fetch has more of the body, the first one ends, and its clients go on with the other. If the other
// fails, or does not overtake within 256 KiB, it ends itself, and the time until the next one doubles: no source is ended
// because it is slow, if no other is faster. But a sibling that stays below 500 bytes/s is. An origin with a single
// client has no floor, since there is no better source: it may pause for 10 s if it has a strong validator, and else until the
// time between bytes is over. There is one fetch beside a body at a time, however many clients wait, and after three
// that had no more of it than a body that stands still has, that is given up.
//
// New requests do not join a body that makes no progress. They wait until it moves or ends. As soon
// as the origin has shown another version, they join the fetch that has shown it. A slow sibling that was sending the old
// one is then ended, and so are the answers to clients
// that have a part of it, since it may be a lie. The finding counts as a comparison (compare.go).
//
// Slow clients have no floor: what a client does not read is in the store, or waits. The body of
// an event stream or of gRPC that is passed on may pause until its client leaves. A body that can't be stored is kept in
// memory until all have read it, but a client that keeps others waiting for a second is left behind, and gets the rest alone.
//
// # Answers of siblings
//
// A request to a sibling names the cluster's invalidations that concern the object, and a sibling
// that has not applied them has no answer (package invalidation). So whatever a sibling sends is
// newer than those, and ages are not compared. What the origin has shown this cache's own clients, by a reload, a HEAD or
// a 304, is not undone by a sibling's older copy (seen.go), nor by a part or coding that is stored here, nor by a fetch that
// began before ([Cache.replacedBy]).
//
// A sibling's body comes with the checksums of its blocks (statement.go). No byte that differs
// from them is delivered or stored. A sibling's answer is served for Config.SiblingMaxAge at
// most; validating it or passing it on does not extend that ([given]). One answer in
// Config.Compare is later compared with the origin's (compare.go).
//
// # Slices
//
// A large object is kept in slices, each a stored response of its own (slices.go). A request whose answer
// begins in a slice is a request for that slice; what follows it is the rest of the answer. The origin's first answer with
// the whole stays open until a second slice fits (opened.go). If none does, since the servers of the origin disagree, the
// client gets the rest from that answer, or from whichever server has the version, and the object is not sliced for ten minutes.
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
