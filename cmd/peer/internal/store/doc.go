// Package store keeps HTTP bodies on disk, bounded in bytes, and finds them by
// an index in memory.
//
// Every object is one self-describing file: the body first, then the checksums
// of its blocks, the caller's metadata and a footer (see format.go). Start from
// [Open], [Store.Get] and [Store.Create]. A [Writer] may be read while it is being
// written ([Writer.Follow]), so that many readers can attach to a body that is
// still arriving.
//
// # Bytes
//
// No byte of a body is given away that wasn't found right by its block's checksum
// after it was last read from the disk, by a [View] as by a [Follower]. The check
// is made at every read, in the memory from which the bytes are then sent. Asking
// the system whether they are in its page cache, and trusting them if so, would
// save next to nothing (BENCHMARKS.md has the numbers) and not be the same: between
// two looks a page can be dropped and come back from the disk, by reading ahead or
// by another process, and between the look and the sending too. Bodies that lie in
// this process's memory were checked on their way there, and are checked once more
// for another cache ([Share]).
//
// An object whose bytes are not those that were stored, or can't be read, is
// dropped and counted. Nothing of the bad block leaves; what left before is right.
//
// # Crashes
//
// A file is written under a temporary name and renamed when it is complete. A
// process that is killed therefore loses nothing that [Writer.Commit] returned
// for, leaves no half object that looks whole, and removed what it removed. [Open]
// deletes the temporary files, reads the footers of the others and comes back warm.
//
// The store never waits for the disk to sync, since what it keeps can be had
// again. A power cut may therefore undo what was done in the seconds before it:
// objects stored then are missing, and objects removed or replaced then are back.
// It makes no wrong byte: what was written in part is found by its checksums, at
// the next Open or when it is read.
//
// # Failures of the disk
//
// A disk that is full, broken or gone costs hits, not answers: a body that can't
// be stored passes through its [Writer] to all who follow it.
//
// The store knows nothing of HTTP: metadata is opaque, a key is any string. It
// tells its owner through [Hooks] which keys it holds and which of them are
// listed, that is, worth advertising to other caches.
package store
