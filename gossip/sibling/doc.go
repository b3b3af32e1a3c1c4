// Package sibling finds objects at the other caches of a cluster: it asks those whose digests
// advertise an object before the origin, and it answers such requests.
//
// A program that already has an HTTP cache puts a [Transport], an [http.RoundTripper], under
// it: the Transport asks siblings and falls back to the origin. Programs that use an
// [http.Client] without a cache can use it as well. A [Handler] answers siblings from the cache. A
// cache that checks the answers of siblings itself uses [New], [Client.Lookup] and [IsLookup]. A program
// without a cache of its own uses package httpcache.
//
// # Lookup requests
//
// A lookup request is a GET in absolute form, sent to the sibling's address, with
// "Cache-Control: only-if-cached" (RFC 9111 section 5.2.1.7). A sibling that has the object
// fresh answers with it, and the last member of Cache-Status (RFC 9211) says "hit". A sibling
// without it answers 504: a false hit. No cache asks others to answer a lookup request, so
// requests cannot go in circles: a Handler asks no sibling, and a Transport answers 504 to a
// request that is only-if-cached.
//
// A [Locator] returns the candidates for the identity of an object. A [gossip.Node] is one: it has
// the digests of the other peers. A digest is a hint: whatever a sibling does, even if it
// does not answer, the caller gets the object from the next one or from the origin.
//
// # Order of candidates
//
// The expected cost of a candidate is its round trip divided by the probability that it has the
// object. The cheapest is asked first. Between candidates whose costs differ by less than a
// factor of √2 the Locator decides, which spreads the load. Caches outside the cluster
// (CandidatesFor of a [Locator]) are ranked with its members. Candidates of this peer's zone go before all
// others, unless they are half as likely to have the object or far slower.
//
// The round trip is a moving average that drifts to the average of the sibling's zone or, if that is unknown, of all
// siblings, so a sibling that was slow once is tried again. The probability begins with what the digest promises and
// follows the outcomes of recent requests.
//
// # Hedges
//
// If a sibling takes longer than its recent answers did, by three times what they usually differ from their average,
// the next candidate is asked as well. If there is none, the origin is asked, after four times as long. The first good
// answer wins and the other request is canceled. At most one request in twenty is such a hedge, and at most ten are
// sent at once, so that a cluster in trouble does not get twice the load. A sibling that is silent for half of the
// deadline, or is overtaken three times in a row, counts as one that does not answer.
//
// # Health
//
// [Health] has the only records of the behaviour of other caches, by name. Nothing else decides which of them are not
// asked for a while. All that is learned of one is an outcome, and one function records it (outcome.go):
//
//	event                                  noted by        effect
//	the header of an answer                Client          round trip, deadline; ends a suspension
//	a body                                 Client          throughput, which decides if the origin goes first
//	the object                             Client          probability of a hit
//	504, a false hit                       Client          probability of a hit; credit, see below
//	an answer that can't be used           Client          the same, unless the client asked for a fresher one than others
//	questions to keepers of digests        Client          the same; what their answers were worth decides which of
//	                                                       them are asked first (keepers.go)
//	a wrong answer ([Client.Accuse])       its caller      quarantine for 1 min, doubling to 30 min
//	refused, failed, broken body           Client          suspension for 0.5 s, doubling to 30 s until it answers
//	no answer within the deadline          Client          the same, unless this process is late or most siblings are
//	overtaken after half of the deadline,  Client          the same
//	  or 3 times in a row
//	questions to owners                    Coalescer       errors suspend; from the third timeout in a row on, no
//	                                                       questions for a while; an answer ends both
//	a new Incarnation                      Client.Lookup   ends a suspension, resets the probability, keeps quarantine
//	membership reports its death           [Client.Gone]   requests to it are canceled; the Locator stops naming it
//
// A false hit costs a sibling one unit of its credit, and a hit gives it eight, up to 64. So a sibling is asked while
// more than one in nine of its digest's claims are true. One that has not had a hit has a credit of six on trust, less
// if its digest expects many false hits, and none from about three in ten on; it gets back what the error rate of its
// digest explains, up to one false hit in 50 lookups. All siblings that are asked on trust may together have a false
// hit in one lookup of 32, so that many names cost no more than a few; those whose digests claim no more than their
// error rates explain, as they do while a cluster is empty, in one of eight. A sibling without credit is quarantined:
// it is asked once after a second, and if that is a false hit, after twice that, up to 30 min; a hit ends it. From a
// minute on, Locator.Distrust is called.
//
// A sibling that was asked although no digest names it ([Lookup.Only], LookupRequest.InFlight) promised
// nothing: if it does not have the object, that is not recorded.
//
// [Client.Lookup] reads Health: it leaves out siblings that are suspended or quarantined, and
// ranks the others. So do hedges, which wait for what it usually takes; what [NewCoalescer] returns, which asks no owner
// that is suspended; and status pages ([Health.Of]). The deadline is the same for all
// siblings: three times the average of recent requests, but at least [Config.Timeout] and at most
// three times that. Origins have similar records, of round trip and throughput only.
//
// # Sharing
//
// A [Client], a [Transport] and a [Handler] are safe for concurrent use, and have no
// global state. A [Lookup] and its answers belong to one goroutine. The header of a
// [LookupRequest] is read until the lookup ends, and never changed.
package sibling
