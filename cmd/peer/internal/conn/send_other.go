//go:build !linux

package conn

import (
	"io"
	"os"
)

// A span is a part of a file: n bytes from offset off on.
type span interface {
	Span() (f *os.File, off, n int64)
}

// sendSpan copies a part of a file after what is kept back.
func (c *Conn) sendSpan(_ span, src io.Reader) (int64, error) {
	if err := c.Release(); err != nil {
		return 0, err
	}
	return c.copyFrom(src)
}
