package peertls

import (
	"crypto/tls"
	"io"
	"net"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/opening"
)

const (
	handshakeRecord = 0x16 // the first byte of a TLS connection (RFC 8446 section 5.1)
	firstByteWait   = 30 * time.Second
)

// Listen returns a listener that accepts TLS and plain connections on l's port, each once its first byte has arrived,
// which decides what it is. Its Close closes l.
func Listen(l net.Listener, i *Identity) net.Listener {
	config := i.Server()
	return opening.Listen(l, opening.Opening{Wait: firstByteWait, Read: func(c net.Conn) (net.Conn, error) {
		p := &peeked{Conn: c, unread: true}
		_, err := io.ReadFull(c, p.first[:])
		if p.first[0] == handshakeRecord {
			return tls.Server(p, config), err
		}
		return p, err
	}})
}

// peeked is a connection whose first byte was read ahead.
type peeked struct {
	net.Conn
	first  [1]byte
	unread bool
}

func (p *peeked) Read(b []byte) (int, error) {
	if p.unread && len(b) > 0 {
		p.unread = false
		b[0] = p.first[0]
		return 1, nil
	}
	return p.Conn.Read(b)
}

// NetConn returns the connection below.
func (p *peeked) NetConn() net.Conn { return p.Conn }

// ReadFrom lets the kernel copy a file if the connection can do that.
func (p *peeked) ReadFrom(r io.Reader) (int64, error) {
	if to, ok := p.Conn.(io.ReaderFrom); ok {
		return to.ReadFrom(r)
	}
	return io.Copy(struct{ io.Writer }{p.Conn}, r)
}

// CloseWrite closes the writing half if the connection can do that, or else the connection.
func (p *peeked) CloseWrite() error {
	if c, ok := p.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return p.Conn.Close()
}
