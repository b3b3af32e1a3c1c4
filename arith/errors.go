package arith

import "errors"

var (
	// ErrTruncated says that the input ended before the value did.
	ErrTruncated = errors.New("arith: input is truncated")

	// ErrCorrupt says that no encoder wrote this input for the given m and x: bytes are left
	// over, a count is wrong, or something is not in its canonical form.
	ErrCorrupt = errors.New("arith: input is corrupt")
)
