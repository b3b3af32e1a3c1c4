// Package store keeps HTTP bodies on disk, bounded in bytes, and finds them by
// an index in memory.
//
// Objects whose bodies have at most 64 KiB share files, called segments, to which they
// are appended (see segment_format.go). A larger object is a self-describing file: first
// the body, then the checksums of its blocks, the caller's metadata and a footer (see
// format.go). Start from [Open], [Store.Get] and [Store.Create]. A [Writer] can be read
// while it is being written ([Writer.Follow]), so that many readers can attach to a body
// that is still arriving.
//
// The store knows nothing of HTTP: metadata is opaque, a key is any string. It
// tells its owner through [Hooks] which keys it holds, and which of them are
// listed, that is, worth advertising to other caches.
//
// # Checksums
//
// Every byte that comes from the disk is checked, block by block, before any of its block
// leaves the store. For a connection, checking costs some 25 us for 64 KiB, and up to 100 us
// for 1 MiB, more than letting the kernel send the body from its page cache (BENCHMARKS.md),
// a third of the whole answer. So the kernel sends a block that was checked less than a minute
// ago, if the system says that all its pages are still in memory. If any of them is not, all
// checks of that file are forgotten. For another cache ([Share]) every byte is checked each
// time, even if the body is in memory: the other cache would keep an error as the truth.
// A [Follower] that reads back the file of a body being written checks each block too.
//
// This is enough because a page contains what was checked until it leaves memory, and
// only a read brings it back from the disk. Reading ahead is off for the store's files, so
// reading a body brings in the pages of the block that is then checked, and no others. The
// description of an object shares a page with the end of the body: what the body has on that
// page is kept in memory, and sent from there. The scrub ends the trust in what it reads. A
// reader looks at all pages of what it is about to send, up to 1 MiB at a time.
//
// A small body is read together with its description, and checked each time that it
// comes from the disk. The kernel never sends one from there.
//
// Two cases remain: a page that leaves memory unnoticed and is brought back, damaged, by
// another process within the minute after it was checked; and one that leaves memory in the
// microseconds between the look and the sending. Where the system doesn't tell what is in
// memory (Linux before 6.5, other systems, an [FS] of the caller's own), everything is
// checked every time.
//
// An object whose bytes are not those that were stored, or that can't be read, is
// dropped and counted. Nothing of a bad block leaves the store; what left before it is right.
//
// # Room
//
// All files together keep to [Options.MaxBytes], including what removed objects leave behind
// in segments, the garbage. Garbage may take an eighth of the segments, and two segments more.
// Beyond the eighth, the segment that holds the least is turned over: the objects that it still
// holds are appended to another one, and its files are removed. Where objects arrive faster
// than that works, the segment is dropped with the objects in it. A store that is given less
// room than its files have keeps what fits, and exceeds the bound until turnover is done, or
// new objects arrive. A segment gets a 64th of the store, from 64 KiB to 16 GiB, and an object
// that takes more than a quarter of a segment has a file of its own.
//
// # Eviction
//
// A full store evicts what is requested least, as the index (W-TinyLFU) estimates. Before
// that it evicts copies ([Meta.Copied]) as long as they take more than a 32nd of the store:
// another cache of the cluster has such an object, so losing it costs a request to that cache
// and not to the origin. Copies that [Store.Get] finds stay longer than others. A store with
// room to spare keeps all of them. The mark of a copy survives a restart.
//
// # Crashes
//
// A file is written under a temporary name and renamed when it is complete. A record
// of a segment is written before its entry, which points to it, and an entry that was not
// written completely is cut off. One byte of the entry marks it as held or removed. These marks,
// and the removals of files, are written one after another, in the order in which memory
// changed, and none is left out, not even in a segment that is removed next. So at any
// time one of an object's entries is held:
//
//   - The entry of a new object is held from the start, before the entry of the object that it
//     replaces is marked as removed.
//   - An object that is moved gets a second entry, not held; then this is marked as held, then
//     the first one as removed.
//   - The entry of a new description is not held until the description is in memory, and nothing
//     replaced or removed the object meanwhile. Then it is marked as held, and the old one as
//     removed. [Store.Update] waits for that.
//   - The files of a segment are removed after the marks of what was moved out of it.
//
// While the store is open, memory decides: turnover doesn't look at the marks. A
// process that is killed therefore loses nothing for which [Writer.Commit] or [Store.Update]
// returned, leaves no half object that looks whole, and nothing comes back for which
// [Store.Delete] or [Store.DeleteObject] returned. What is evicted is removed from the disk moments later, or
// before one of these returns. [Open] deletes the temporary files, reads the footers of the
// others and the entries of the segments, but no bodies, and the store is warm.
//
// The store never waits for the disk to sync, since what it keeps can be fetched
// again. A power cut may therefore undo the last seconds: objects that were stored then, or
// moved by turnover, are missing, and objects that were removed or replaced then are back.
// A power cut causes no wrong byte: the checksums reveal what was written in part, at
// the next Open or when it is read.
//
// # Failures of the disk
//
// A disk that is full, broken or gone costs hits, not answers: a body that can't
// be stored passes through its [Writer] to all who follow it. If an entry can't be read
// at a start, the segment's objects behind it are lost too. What can't be removed is tried
// again every minute.
package store
