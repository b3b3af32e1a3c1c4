package cache

import (
	"io"
	"net/http"
	"sync/atomic"
)

// noBody reports whether responses of a status have no content.
func noBody(status int) bool {
	return status == http.StatusNoContent || status == http.StatusNotModified
}

// errReader returns an error that a Read gave along with its last bytes.
type errReader struct{ err error }

func (e errReader) Read([]byte) (int, error) {
	if e.err == nil {
		return 0, io.EOF // of this part: go on with the next reader
	}
	return 0, e.err
}

// closing is a body with something else to read instead, or to do after it is
// closed.
type closing struct {
	io.ReadCloser
	instead io.Reader
	after   func()
}

func (c *closing) Read(p []byte) (int, error) {
	if c.instead != nil {
		return c.instead.Read(p)
	}
	return c.ReadCloser.Read(p)
}

func (c *closing) Close() error {
	err := c.ReadCloser.Close()
	if c.after != nil {
		c.after()
	}
	return err
}

// counted counts the bytes of a body.
type counted struct {
	io.ReadCloser
	n *atomic.Uint64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(uint64(n))
	return n, err
}
