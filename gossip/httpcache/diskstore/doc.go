// Package diskstore keeps HTTP bodies on disk, bounded in bytes, and finds them by an index in memory.
//
// The store is one log (record.go), which is cut into segments. An entry of the log says that an object is stored, or
// that one was removed; beside it are the description of the object and, up to 64 KiB, its body. A longer body is a
// file of its own, which is written once. Start from [Open] or, for a cache, [Options.Open]. A [Store] has the
// methods of [bodies.Store]. A body can be read while it is being written ([bodies.Stream.Follow]), so that many
// readers can attach to a body that is still arriving.
//
// The store knows nothing of HTTP: metadata is opaque, and a key is any string. It reports through [bodies.Hooks]
// which keys it holds, and which of them are listed, that is, worth advertising to other caches.
//
// # Checksums
//
// Every byte that comes from the disk is checked, block by block: no byte of a block leaves the store before the
// whole block was checked. This costs about 25 us for 64 KiB, and up to 100 us for 1 MiB, a third of an answer
// (BENCHMARKS.md). So the kernel sends a block of a long body by itself if it was checked less than a minute ago, the
// system says that all its pages are still in memory, and nobody has written to the file since (its ctime). Otherwise
// all checks of that file are forgotten. A page contains what was checked until it leaves memory, and only a read
// brings it back: read-ahead is off for the store's files. A body in the log is read and checked with its
// description. A [bodies.Follower] that reads back the file of a body being written also checks each block, and another
// cache checks what it gets by the same sums ([bodies.Sums]).
//
// Some cases remain: a page that leaves memory and is read back, damaged, by another process within the minute, or in
// the microseconds between the test and the sending; bits that flip in memory; and writes through a mapping of the file
// that was written through before. Where the system doesn't report which pages are in memory (Linux before 6.5, other
// systems, an [FS] of the caller's own), everything is checked every time.
//
// An object whose bytes differ from the stored ones, or that can't be read, is removed and counted. No byte of a bad
// block leaves the store; all bytes sent before it are right.
//
// # Room
//
// All files together stay within [Options.MaxBytes], including the garbage: what removed objects left in segments.
// Garbage may take an eighth of the segments, plus two segments. When it exceeds the eighth, the segment that holds
// the least is turned over: its remaining objects are appended to the last segment, and its files are removed. If
// objects arrive faster than turnover works, the segment is dropped with the bodies in it; objects whose bodies are
// files are moved, to no more than half of its bytes. If the bound is lowered below the size of the files, the store
// keeps what fits, and exceeds the bound until turnover is done or new objects arrive. A segment gets a 64th of the
// store, from 64 KiB to 16 GiB. A body that, with its description, takes more than a quarter of a segment is a file; a
// description that takes more is refused ([bodies.ErrTooLarge]).
//
// # Eviction
//
// A full store first evicts copies ([bodies.Meta.Copied]), as long as they take more than a 32nd of the store:
// another cache of the cluster has such an object, so losing it costs a request to that cache and not to the origin.
// Then it evicts the objects that are requested least, as the index (W-TinyLFU) estimates. Copies that
// [bodies.Store.Get] finds stay longer than others. A store with free room keeps all copies. The mark of a copy
// survives a restart.
//
// # Crashes
//
// The log has one writer, and memory follows it: what can be found was written. While an object's entry is written,
// nothing else can happen under its key. The record, and the file of a longer body, are written before the entry. So
// whatever a killed process did last, the log says what it held:
//
//   - A new object, or a new description, is in the log before the object that it replaces is removed there. Until then
//     both are held, and the later number counts.
//   - An object that is moved is in the log twice, under one number, until its first entry is removed. The later one counts.
//   - Removals are written together, a while after memory changed, but before [bodies.Store.Delete] or
//     [bodies.Store.DeleteObject] returns, before a segment is removed, and before the file of a body is. A removal
//     is in the segment of the entry that it removes, so that it goes when that goes, and not before. They are
//     written in the order of the segments: the object that another replaced is never in a later segment.
//   - A disk that is full takes no removal. Then it is written over the first byte of the entry.
//
// So a killed process loses no object for which [bodies.Stream.Commit] or [bodies.Store.Update] returned, and leaves
// no partial object. No object comes back for which [bodies.Store.Delete] or [bodies.Store.DeleteObject] returned; an
// object that was evicted in the last moments may. [Open] reads the entries of the segments, but no bodies, and
// removes the files of bodies that no entry names.
//
// The store never waits for the disk to sync, since its objects can be fetched again. A power cut may therefore undo
// the last seconds: objects that were stored then, or moved by turnover, are missing, and objects that were removed
// or replaced then are back. The entries of a segment before the first that was lost so are kept, and those after it
// are cut off. A power cut causes no wrong byte: at the next Open, or when an object is read, the checksums reveal
// incomplete writes.
//
// # Disk failures
//
// A disk that is full, broken or gone costs hits, not answers: a body that can't be stored passes through its stream
// to all of its followers. So does one that hangs, two seconds later, and what only the disk has is then not read: only
// what it was doing when it began to hang waits for it, and what must be removed. If an entry is damaged in another way
// than by a power cut, or can't be read at a start, the objects of its segment are lost: one of them may have been
// removed there. A failed removal is tried again every few seconds.
package diskstore
