// Package store keeps HTTP bodies on disk, bounded in bytes, and finds them by
// an index in memory.
//
// Every object is one self-describing file: the body first, then the checksums
// of its chunks, the caller's metadata and a footer (see format.go). A file is
// written under a temporary name and renamed when it is complete, so a process
// that is killed leaves whole objects and temporary files, never half an object
// that looks whole. [Open] removes the temporary files, reads the footers of
// the others and comes back warm.
//
// Start from [Open], [Store.Get] and [Store.Create]. A [Writer] may be read
// while it is being written ([Writer.Follow]), so that many readers can attach
// to a body that is still arriving.
//
// A body's checksums are verified before or while it is first read in a process
// that did not write it. From then on it goes from the file to the reader as it
// is, moved by the kernel where that can be ([View.Source]): what a disk spoils
// after that, while the process runs, is found by the next process only.
//
// The store knows nothing of HTTP: metadata is opaque, a key is any string. It
// tells its owner through [Hooks] which keys it holds and which of them are
// listed, that is, worth telling other caches about.
package store
