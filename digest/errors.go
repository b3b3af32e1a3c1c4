package digest

import (
	"errors"
	"fmt"
)

// What a caller can do about bad bytes differs by these. Decoders wrap them in a
// [FormatError]; test with errors.Is.
var (
	// ErrVersion: a later format. Leave that peer alone until it changes.
	ErrVersion = errors.New("unknown format version")
	// ErrTooLarge: beyond the [Limits] given. Refuse, and warn once.
	ErrTooLarge = errors.New("beyond the limits")
	// ErrCorrupt: not what any encoder writes. Drop it; keep the last good digest.
	ErrCorrupt = errors.New("corrupt")
	// ErrBase: a delta for another filter than the one at hand. Ask for a snapshot.
	ErrBase = errors.New("delta belongs to another filter")
	// ErrSeed: the publisher hashes keys under another secret. Its digests are of no use here.
	ErrSeed = errors.New("keys are hashed under another seed")
	// ErrGeometry: a [Geometry] that no filter can have, or two that do not go together.
	ErrGeometry = errors.New("impossible geometry")
)

// A FormatError says where a message went wrong. Err wraps one of the sentinels.
type FormatError struct {
	Field  string // as FORMAT.md names it
	Offset int    // of the field's first byte in the message, from 0
	Err    error
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("digest: %s at byte %d: %v", e.Field, e.Offset, e.Err)
}

func (e *FormatError) Unwrap() error { return e.Err }
