// Package sibling finds objects at the other caches of a cluster: it asks those
// whose digests list an object before anybody asks the origin, and it helps to
// answer such questions.
//
// A program without a cache of its own starts with [NewCache]. A [Cache] keeps in a
// [Store], such as [Memory], what a handler writes ([Cache.Wrap]), an origin answers
// ([Cache.Transport]) or a function loads ([Cache.Get], or [Get] for values of a type), and
// gets from siblings what they have. For HTTP it is a shared cache by RFC 9111's rules.
// [Cache.Remove] removes an object everywhere, and [Cache.Set] replaces it.
//
// A program that already has an HTTP cache puts [Transport], an [http.RoundTripper], under
// it: that asks siblings and falls back to the origin. It is also for programs
// that fetch by an [http.Client]. [Handler] answers siblings from such a cache. A cache that
// checks answers itself uses [New] and [Client.Lookup], and [IsLookup] where it is asked.
//
// # Questions
//
// A question is a GET in absolute form, sent to the sibling's address, with
// "Cache-Control: only-if-cached" (RFC 9111 section 5.2.1.7). A sibling that has
// the object fresh answers with it, and the last member of Cache-Status (RFC 9211) says
// "hit". A sibling without it answers 504: a false hit. No cache answers a question by
// asking others, so questions can't go in circles: a Handler asks nobody, and a Transport
// answers 504 to a request that is only-if-cached.
//
// A [Locator] turns the identity of an object into candidates. A [gossip.Node] is one: it
// keeps the digests of the other peers. A digest is a hint: whatever a sibling does, even if
// it does not answer, the caller gets the object from the next one or from the origin.
//
// # Whom to ask first
//
// A candidate's expected cost is its round trip over the odds that it has the
// object: what finding it costs by such questions. The cheapest is asked first.
// Between candidates within a factor of √2 the Locator decides, which spreads the load. Caches
// outside the cluster ([OutsideLocator]) are ranked with its members.
//
// The round trip is a moving average that drifts towards the average of all siblings, so a
// sibling that was slow once is tried again. The odds begin with what the digest promises
// and follow the results of the latest questions.
//
// # Hedges
//
// If a sibling takes longer than 95 % of its answers did, the next candidate is asked as well.
// If there is none, the origin is asked, after four times as long. The first good answer wins and
// the other question is canceled. At most one question in twenty is such a hedge
// ([Config.Hedges]), and at most ten come at once, so that a cluster in trouble is not asked
// twice as much. A sibling that is silent for half of the deadline, or overtaken three times
// in a row, counts as one that does not answer.
//
// # Health
//
// [Health] is the one record of how other caches do, by name. Nothing else remembers which of
// them to leave alone:
//
//	what happens                           noted by        what follows
//	an answer's header                     Client          round trip, 95 % quantile, deadline; ends a suspension
//	a body                                 Client          throughput, which decides if the origin goes first
//	the object                             Client          odds of a hit
//	504, a false hit                       Client          odds; 32 that the digest's error rate does not explain by
//	                                                       a quarter, and more than hits: quarantine for 1 min,
//	                                                       doubling to 30 min, and Locator.Distrust
//	refused, failed, broken body           Client          suspension for 0.5 s, doubling to 30 s until it answers
//	no answer within the deadline          Client          the same, unless this process is late or most siblings are
//	overtaken: after half of the deadline, Client          the same
//	  or 3 times in a row
//	other messages (Health.Asked)          their sender    errors suspend, the third silence in a row too; an answer
//	                                                       ends a suspension
//	a new Incarnation                      Client.Plan     ends a suspension, forgets odds, keeps quarantine
//	membership says that it died           [Client.Gone]   what it was asked is canceled; the Locator names it no more
//
// A sibling that was asked although no digest names it ([Lookup.Only], [Lookup.Also]) promised
// nothing: that it does not have the object is not recorded.
//
// Health is read by [Client.Plan], which leaves out siblings that are suspended or quarantined
// and ranks the rest; by hedges, which wait for the quantile; by a [Coalescer], which asks no
// owner that is suspended; and by status pages ([Health.Of]). A deadline is the same for all
// siblings: three times what half of the latest questions took, from [Config.Timeout] to three
// times that. Origins have records of the same kind, of round trip and throughput only.
//
// # Sharing
//
// A [Client], a [Transport], a [Handler] and a [Cache] are safe for concurrent use, and have
// no global state. A [Lookup] and its answers belong to one goroutine. A question's header
// is read until the question is answered, and never changed.
package sibling
