// Package invalidation carries invalidations through a cluster: each says that copies of some
// objects are out of date, and reaches every member, including those that are away when it is
// made. PROTOCOL.md, section 12, specifies it.
//
// An [Engine] is one member's side. It does no I/O and starts no goroutine: it is given
// messages and the time, and says what to send, what to apply and which members to ask. Package
// gossip runs one in each node; users call gossip.Node.Invalidate. An Engine is not safe
// for concurrent use.
//
// The invalidations of one life of a member are a log, numbered from 1. A member takes them in
// that order, so that one number says what it has of a log. It forgets old entries, but
// not how far it has come. A member that missed entries which the others have forgotten
// invalidates everything that it holds.
//
// No clocks are compared. A member removes what it stored before it applied an
// invalidation. What it asks others for afterwards it takes only from those that have applied
// the invalidation as well ([Engine.Concerning], [Engine.Has]). So nothing old can come back, however
// messages travel.
package invalidation
