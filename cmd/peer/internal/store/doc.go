// Package store keeps HTTP bodies on disk, bounded in bytes, and finds them by
// an index in memory.
//
// Objects whose bodies have at most 64 KiB share files, segments, to which they are
// appended (see segment_format.go). A larger one is a self-describing file: the body
// first, then the checksums of its blocks, the caller's metadata and a footer (see
// format.go). Start from [Open], [Store.Get] and [Store.Create]. A [Writer] may be read
// while it is being written ([Writer.Follow]), so that many readers can attach to a body
// that is still arriving.
//
// # Bytes
//
// What comes from the disk is checked, block by block, before any of it leaves: in
// the memory into which it was read, and from which it is sent. That costs a
// connection some 25 us for 64 KiB and up to 100 us for 1 MiB more than to let the
// kernel send it from its page cache (BENCHMARKS.md), a third of the whole answer.
// So a block that was checked less than a minute ago is sent by the kernel, if the
// system says that all of its pages are in memory; if any is not, all that was
// checked of the file is forgotten. For another cache every byte is checked each
// time ([Share]), also of bodies in memory: an error there would be kept as truth.
// A [Follower] that reads the file of a body being written checks each block too.
//
// Why that is enough: a page holds what was checked until it leaves memory, and
// comes back from the disk only by being read. Of the store's own reads, those for
// a body bring in the pages of the block that is then checked, and no others, since
// reading ahead is off for its files. Descriptions share a page with the end of a
// body: what the body has on that page is kept in memory, and sent from there. The
// scrub ends the trust in what it read. A reader looks at all pages of what it is
// about to send, up to 1 MiB.
//
// A small body is read with its description, at once, and checked each time that it
// comes from the disk; the kernel never sends one from there.
//
// What is left: a page that leaves memory unnoticed and is brought back, spoilt, by
// a process that is not the store, within the minute after it was checked; and one
// that leaves memory between the look and the sending, microseconds later. Where
// the system doesn't tell what is in memory (Linux before 6.5, others, a [FS] of
// one's own), everything is checked every time.
//
// An object whose bytes are not those that were stored, or can't be read, is
// dropped and counted. Nothing of the bad block leaves; what left before is right.
//
// # Room
//
// All files together keep to [Options.MaxBytes], what objects left behind in segments
// included: room for that is an eighth of the segments and two more. Beyond the eighth, the
// segment of which the least is held is turned over: what is held of it is appended
// anew, and its files are removed. Where objects come faster than that goes, it is
// dropped with what it holds. A store that is given less room than its files have keeps what
// fits into that, and exceeds it until turnover is done, or objects come. A segment gets a 64th of the store, from 64 KiB to 16 GiB,
// and what takes more than a quarter of one has a file of its own.
//
// # What leaves
//
// A full store lets go of what is asked for least, as the index (W-TinyLFU) reckons. But
// before that it lets go of copies ([Meta.Copied]) while they take more than a 32nd of
// it: another cache of the cluster has such an object, and losing it costs a question to
// that one, not to the origin. Among the copies those stay that [Store.Get] finds. A store
// with room to spare keeps all of them; what is a copy is remembered over a restart.
//
// # Crashes
//
// A file is written under a temporary name and renamed when it is complete. A record
// of a segment is written before its entry, which names it, and an entry that was not
// written whole is cut off. One byte of the entry marks it as held or removed. These marks,
// and the removals of files, are done one after another, in the order in which memory
// changed, and none is left out, also not in a segment that is to be removed next. So one
// of an object's entries is held at any time:
//
//   - a new object's is held from the start, before that which it replaces is marked as removed;
//   - one that is moved gets a second, not held, then this is marked as held, then the first as removed;
//   - a new description is not held until it is in memory and nothing replaced or removed the object
//     meanwhile, then held, then the old one removed; [Store.Update] waits for that;
//   - a segment's files go after the marks of what was moved out of them.
//
// What memory says counts while the store is open: turnover doesn't ask the marks. A
// process that is killed therefore loses nothing that [Writer.Commit] or [Store.Update]
// returned for, leaves no half object that looks whole, and nothing comes back that
// [Store.Delete] or [Store.DeleteObject] returned for; what left for want of room is removed
// from the disk moments later, or before one of these returns. [Open] deletes the temporary files, reads the footers of the others and
// the entries of the segments, no bodies, and comes back warm.
//
// The store never waits for the disk to sync, since what it keeps can be had
// again. A power cut may therefore undo what was done in the seconds before it:
// objects stored then are missing, or moved then by turnover, and objects removed or
// replaced then are back.
// It makes no wrong byte: what was written in part is found by its checksums, at
// the next Open or when it is read.
//
// # Failures of the disk
//
// A disk that is full, broken or gone costs hits, not answers: a body that can't
// be stored passes through its [Writer] to all who follow it. An entry that can't be read
// at a start costs its segment's objects behind it, too. What can't be removed is tried
// again every minute.
//
// The store knows nothing of HTTP: metadata is opaque, a key is any string. It
// tells its owner through [Hooks] which keys it holds and which of them are
// listed, that is, worth advertising to other caches.
package store
