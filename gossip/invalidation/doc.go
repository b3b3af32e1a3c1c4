// Package invalidation carries invalidations through a cluster: each says that what is
// held of some objects is out of date, and reaches every member, those too that are
// away when it is made. PROTOCOL.md, section 12, specifies it.
//
// An [Engine] is one member's side. It does no I/O and starts no goroutine: it is given
// messages and the time, and says what to send, what to apply and whom to ask. Package
// gossip runs one in each node; users call gossip.Node.Invalidate. An Engine is not safe
// for concurrent use.
//
// Invalidations of one member's life are a log, numbered from 1. A member takes them in
// that order, so that all it has of a log is one number, and it forgets old ones, but
// never how far it has come. Whoever finds that it missed some which others have
// forgotten, too, invalidates everything that it holds.
//
// No clocks are compared. What a member stored before it applied an invalidation goes;
// what it asks others for afterwards it takes from those only that have applied it as
// well ([Engine.Concerning], [Engine.Has]). So nothing of before can come back, however
// messages travel.
package invalidation
