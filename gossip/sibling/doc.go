// Package sibling finds objects at the other caches of a cluster: it asks those
// whose digests say that they hold an object before anybody goes to the origin,
// and helps to answer those that ask.
//
// A program without a cache of its own starts with [NewCache]: a [Cache] keeps in a
// [Store], such as [Memory], what a handler makes ([Cache.Wrap]), an origin answers
// ([Cache.Transport]) or a function loads ([Cache.Get], or [Get] for values of a type), and
// gets from siblings what they have. Of HTTP it is a shared cache by RFC 9111's rules.
// [Cache.Remove] removes from all, and [Cache.Set] replaces.
//
// Under a cache that there is already stands [Transport], an [http.RoundTripper] that
// asks siblings and falls back to the origin's, for HTTP caches that are transports
// themselves and for programs that fetch by an [http.Client]. [Handler] answers
// siblings from such a cache. What they are made of is there for caches that judge
// answers themselves: [New] and [Client.Ask], [IsQuestion], [MarkHit] and [AnswerMiss].
//
// # Questions
//
// A question is a GET in absolute form, sent to the sibling's address, under
// "Cache-Control: only-if-cached" (RFC 9111 section 5.2.1.7). A sibling that has
// the object fresh answers with it and ends Cache-Status (RFC 9211) by a member that says
// "hit". A sibling without it answers 504: a false hit. Nobody answers a question by
// asking others, so that questions can't go in circles: a Handler has nobody to
// ask, and a Transport answers 504 to what is only-if-cached.
//
// A [Locator] turns the identity of an object into candidates; [Digests] is the
// one that knows them by the digests which gossip keeps. A digest is a hint:
// whatever a sibling does, its not answering included, the caller gets the object
// from the next or from the origin.
//
// # Whom to ask first
//
// A candidate's expected cost is its round trip over the odds that it has the
// object: what finding it costs by such questions. The cheapest is asked first, and
// between those within a factor of √2 the Locator decides, which spreads the load. Caches
// beside the cluster ([QuestionLocator]) are ranked with its members.
//
// The round trip is a moving average, which ages towards that of all siblings, so that a
// sibling that was slow once is tried again. The odds begin with what the digest promises
// and follow what the latest questions brought.
//
// # Hedges
//
// If a sibling takes longer than it mostly does, the next candidate is asked besides; if
// there is none, the origin, after four times as long. The first good answer wins and the
// other question is canceled. Such questions are at most one in twenty ([Config.Hedges]),
// and ten at once, so that a cluster in trouble is not asked twice as much. A sibling that
// is silent for half of the deadline, or overtaken three times in a row, counts as one
// that does not answer.
//
// # Health
//
// [Health] is the one record of how others do, by name. Nothing else remembers whom to
// leave alone:
//
//	what happens                           noted by        what follows
//	an answer's header                     Client          round trip, 95 % quantile, deadline; ends a suspension
//	a body                                 Client          throughput, which decides if the origin goes first
//	the object                             Client          odds of a hit
//	504, a false hit                       Client          odds; 32 that the digest's error rate does not explain by
//	                                                       a quarter, and more than hits: quarantine for 1 min,
//	                                                       doubling to 30 min, and Report.Distrust
//	refused, failed, broken body           Client          suspension for 0.5 s, doubling to 30 s until it answers
//	no answer within the deadline          Client          the same, unless this process is late or most siblings are
//	overtaken: after half of the deadline, Client          the same
//	  or 3 times in a row
//	other messages (Health.Asked)          their sender    errors suspend, the third silence in a row too; an answer
//	                                                       ends a suspension
//	a new Incarnation                      Locator         ends a suspension, forgets odds, keeps quarantine
//	membership says that it died           [Client.Gone]   what it was asked is canceled; the Locator names it no more
//
// Read by: [Client.Plan], which leaves out those suspended or quarantined and ranks
// the rest; hedges, which wait for the quantile; and status pages, by [Health.Of].
// A deadline is not of one sibling but of all: three times what half of the latest
// questions took, from [Config.Timeout] to three times that. Origins have records of the same kind,
// of round trip and throughput only.
//
// # Sharing
//
// A [Client], a [Transport], a [Handler] and a [Cache] are safe for concurrent use, and have
// no global state. An [Inquiry] belongs to one goroutine, an [Answer] to whom it
// was given. Headers handed in are read until the question is answered, and never
// changed.
package sibling
