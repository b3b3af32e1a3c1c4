package arith

import "errors"

var (
	// ErrTruncated says that the input ended before the value did.
	ErrTruncated = errors.New("arith: input is truncated")

	// ErrCorrupt says that no encoder wrote this input for the stated m and x:
	// bytes are left over, a count disagrees, or a form is not the canonical one.
	ErrCorrupt = errors.New("arith: input is corrupt")
)
