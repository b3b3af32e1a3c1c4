// Package sibling finds objects at the other caches of a cluster: it asks those
// whose digests say that they hold an object before anybody goes to the origin,
// and helps to answer those that ask.
//
// It is no cache and keeps no object; it stands under one. Start with [New]. Then
// [Transport] is an [http.RoundTripper] that asks siblings and falls back to the
// origin's, for HTTP caches that are transports themselves and for programs that
// fetch by an [http.Client]; [Client.Ask] is what it is made of, for caches that
// judge the answers themselves. [Handler] answers siblings from such a cache, and
// [MarkHit] and [AnswerMiss] are what it is made of.
//
// # Questions
//
// A question is a GET in absolute form, sent to the sibling's address, under
// "Cache-Control: only-if-cached" (RFC 9111 section 5.2.1.7). Who has the object
// fresh answers with it and ends Cache-Status (RFC 9211) by a member that says
// "hit". Who has not, answers 504: a false hit. Nobody answers a question by
// asking others, so that questions can't go in circles: a Handler has nobody to
// ask, and a Transport answers 504 to what is only-if-cached.
//
// A [Locator] turns the identity of an object into candidates; [Digests] is the
// one that knows them by the digests which gossip keeps. A digest is a hint:
// whatever a sibling does, its not answering included, the caller gets the object
// from the next or from the origin. What becomes of each question is told to the
// Locator, so that a peer which refuses connections or whose digest lies stops
// being a candidate.
//
// # Sharing
//
// A [Client], a [Transport] and a [Handler] are safe for concurrent use, and have
// no global state. An [Inquiry] belongs to one goroutine, an [Answer] to whom it
// was given. Headers handed in are read until the question is answered, and never
// changed.
package sibling
