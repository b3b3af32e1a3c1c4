// Package arith compresses sets of positions, and bit arrays, to within a few
// bytes of the fewest bytes that any code could spend on them.
//
// A set is x strictly increasing positions in [0, m); the same set written as
// a bit array has m bits of which x are one. There are C(m, x) such sets, so
// log2 C(m, x) bits is the limit. Start from [AppendSet] and [DecodeSet], or
// from [AppendBitmap] and [DecodeBitmap] if you have the array: equal sets give equal
// bytes either way. The bytes contain neither m nor x nor their own length: the caller's
// message carries all three. [Choose] picks the [Method]
// by a fixed rule.
//
// It is not a general-purpose compressor, and it does not detect damage reliably:
// most altered codes decode to another set. Frame and checksum what you send.
//
// Encoders append to the slice they are given and decoders keep no reference
// to their input. Functions are safe for concurrent use. The bytes are
// specified in ../digest/CODERS.md and are the same on every platform.
package arith
