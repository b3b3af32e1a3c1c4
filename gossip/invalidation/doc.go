// Package invalidation carries invalidations through a cluster: each says that copies of some
// objects are out of date, and reaches every member, including those that are away when it is
// made. PROTOCOL.md, section 12, specifies it.
//
// An [Engine] is one member's side. It does no I/O and starts no goroutine: its caller passes it
// messages and the time, and it returns what to send, what to apply and which members to recall
// entries from. Package gossip runs one in each node; users call gossip.Node.Invalidate. An Engine is
// not safe for concurrent use.
//
// The invalidations of one life of a member are a log, numbered from 1. Members take them in
// that order, so one number says how much of a log a member has. A member forgets old entries,
// but not how far it knows each log. A member that missed entries which the others have forgotten
// invalidates everything that it holds.
//
// No clocks are compared. When a member applies an invalidation, it removes the objects that it
// stored before. Afterwards it takes such an object only from members that have applied the
// invalidation as well ([Engine.Concerning], [Engine.Has]). So no old object can come back,
// whatever the order in which messages arrive.
package invalidation
