package digest

import (
	"errors"
	"fmt"
)

// There is one error for each thing that a caller can do about bad input. Decoders wrap
// them in a [FormatError]; test with errors.Is.
var (
	// ErrVersion: a later format, or a kind or scheme of one. Ignore that peer until it sends another.
	ErrVersion = errors.New("unknown format version")
	// ErrTooLarge: beyond the [Limits] given. Refuse, and warn once.
	ErrTooLarge = errors.New("beyond the limits")
	// ErrCorrupt: no encoder writes this. Drop it; keep the last good digest.
	ErrCorrupt = errors.New("corrupt")
	// ErrBase: the delta belongs to another filter. Request a snapshot.
	ErrBase = errors.New("delta belongs to another filter")
	// ErrSeed: the publisher's keys are of another [Profile], or hashed under another seed, so its
	// digests are useless here.
	ErrSeed = errors.New("keys are of another profile or seed")
)

// errGeometry: a [Geometry] that no filter can have.
var errGeometry = errors.New("impossible geometry")

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
