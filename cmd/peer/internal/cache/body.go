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

// closing is a body with something to do after it is closed.
type closing struct {
	io.ReadCloser
	after func()
}

func (c *closing) Close() error {
	err := c.ReadCloser.Close()
	c.after()
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
