// Package diskstore keeps HTTP bodies on disk, bounded in bytes, and finds them by an index in memory.
//
// Objects whose bodies have at most 64 KiB share files, called segments, to which they are appended
// (see segment_format.go). A larger object is a self-describing file: first the body, then the
// checksums of its blocks, the caller's metadata and a footer (see format.go). Start from [Open] or,
// for a cache, [Options.Open]. A [Store] has the methods of [bodies.Store]. A body can be read while it is being written
// ([bodies.Stream.Follow]), so that many readers can attach to a body that is still arriving.
//
// The store knows nothing of HTTP: metadata is opaque, and a key is any string. It reports
// through [bodies.Hooks] which keys it holds, and which of them are listed, that is, worth
// advertising to other caches.
//
// # Checksums
//
// Every byte that comes from the disk is checked, block by block: no byte of a block leaves the
// store before the whole block was checked. This costs about 25 us for 64 KiB, and up to 100 us for
// 1 MiB, more than letting the kernel send the body from its page cache (BENCHMARKS.md). That is
// a third of the cost of an answer. So the kernel sends a block that was checked less than a minute
// ago, if the system says that all its pages are still in memory and that nobody has written to the file
// since (its ctime). Otherwise all checks of that file are forgotten. Another cache checks what it gets by
// the same sums ([bodies.Sums]). A [bodies.Follower] that reads back the file of a body being written also checks each block.
//
// This is enough because a page contains what was checked until it leaves memory, and only a read
// brings it back from the disk. Read-ahead is off for the store's files, so reading a body loads
// the pages of the block that is then checked, and no others. The description of an object shares a
// page with the end of the body: the body's bytes on that page are kept in memory and sent from
// there. The scrubber forgets the checks of each file that it reads. Before each sending, the
// residency of all pages to be sent and the ctime are tested, up to 1 MiB at a time.
//
// A small body is read together with its description, and checked each time that it is read
// from the disk. The kernel never sends one.
//
// Some cases remain: a page that leaves memory unnoticed and is read back, damaged, by another
// process within the minute after it was checked; one that leaves memory in the microseconds
// between the test and the sending; bits that flip in memory; and writes through a mapping of the file
// that was written through before. Where the system doesn't report which pages are in memory
// (Linux before 6.5, other systems, an [FS] of the caller's own), everything is checked every time.
//
// An object whose bytes differ from the stored ones, or that can't be read, is removed and
// counted. No byte of a bad block leaves the store; all bytes sent before it are right.
//
// # Room
//
// All files together stay within [Options.MaxBytes], including the garbage: the records of removed
// objects in segments. Garbage may take an eighth of the segments, plus two segments.
// When it exceeds the eighth, the segment that holds the least is turned over: its remaining
// objects are appended to another segment, and its files are removed. If objects arrive faster
// than turnover works, the segment is dropped with its objects. If the bound is lowered below the
// size of the files, the store keeps what fits, and exceeds the bound until turnover is done or
// new objects arrive. A segment gets a 64th of the store, from 64 KiB to 16 GiB. An object
// that takes more than a quarter of a segment has a file of its own.
//
// # Eviction
//
// A full store first evicts copies ([bodies.Meta.Copied]), as long as they take more than a 32nd of the
// store: another cache of the cluster has such an object, so losing it costs a request to that
// cache and not to the origin. Then it evicts the objects that are requested least, as the index
// (W-TinyLFU) estimates. Copies that [bodies.Store.Get] finds stay longer than others. A store with
// free room keeps all copies. The mark of a copy survives a restart.
//
// # Crashes
//
// A file is written under a temporary name and renamed when it is complete. A record of a segment
// is written before its entry, which points to it. An incomplete entry is cut off at the next
// start. One byte of the entry marks it as held or removed. These marks and the removals of files
// are written one after another, in the order in which memory changed. None is skipped, not even in
// a segment that is removed next. So at any time one of an object's entries is held:
//
//   - The entry of a new object is held from the start, before the entry of the object that it
//     replaces is marked as removed.
//   - An object that is moved gets a second entry, which is not held. This one is then marked as
//     held, and after that the first one as removed.
//   - The entry of a new description is not held until the description is in memory, and nothing
//     has replaced or removed the object meanwhile. Then it is marked as held, and the old one as
//     removed. [bodies.Store.Update] waits for that.
//   - The files of a segment are removed after the marks of the objects moved out of it.
//
// While the store is open, memory decides: turnover ignores the marks. So a killed
// process loses no object for which [bodies.Stream.Commit] or [bodies.Store.Update] returned, and leaves no
// partial object that looks complete. No object comes back for which [bodies.Store.Delete] or
// [bodies.Store.DeleteObject] returned. An evicted object is removed from the disk moments later, or
// before one of these calls returns. [Open] deletes the temporary files, and reads the footers of
// the other files and the entries of the segments, but no bodies.
//
// The store never waits for the disk to sync, since its objects can be fetched again. A power cut
// may therefore undo the last seconds: objects that were stored then, or moved by turnover, are
// missing, and objects that were removed or replaced then are back. A power cut causes no wrong
// byte: at the next Open, or when an object is read, the checksums reveal incomplete writes.
//
// # Disk failures
//
// A disk that is full, broken or gone costs hits, not answers: a body that can't be stored passes
// through its stream to all of its followers. If an entry can't be read at a start, the objects
// behind it in the segment are lost too. A failed removal is tried again every minute.
package diskstore
