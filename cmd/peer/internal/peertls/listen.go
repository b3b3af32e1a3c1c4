package peertls

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync"
	"time"
)

const (
	handshakeRecord = 0x16 // the first byte of a TLS connection (RFC 8446 section 5.1)
	firstByteWait   = 30 * time.Second
)

// Listen returns a listener that accepts TLS and plain connections on l's port. Its Close closes l.
func Listen(l net.Listener, i *Identity) net.Listener {
	s := &sorter{Listener: l, config: i.Server(), sorted: make(chan net.Conn), failed: make(chan error)}
	s.closed, s.close = context.WithCancel(context.Background())
	s.running.Go(s.accept)
	return s
}

// A sorter waits for the first byte of each connection, which decides whether it is TLS.
type sorter struct {
	net.Listener
	config  *tls.Config
	sorted  chan net.Conn
	failed  chan error
	closed  context.Context
	close   context.CancelFunc
	running sync.WaitGroup
}

func (s *sorter) accept() {
	for {
		c, err := s.Listener.Accept()
		if err == nil {
			s.running.Go(func() { s.sort(c) })
			continue
		}
		select {
		case s.failed <- err:
		case <-s.closed.Done():
			return
		}
	}
}

// sort passes a connection on to Accept once its first byte has arrived.
func (s *sorter) sort(c net.Conn) {
	p := &peeked{Conn: c, unread: true}
	open := context.AfterFunc(s.closed, func() { c.Close() })
	c.SetReadDeadline(time.Now().Add(firstByteWait))
	_, err := io.ReadFull(c, p.first[:])
	c.SetReadDeadline(time.Time{})
	if !open() || err != nil {
		c.Close()
		return
	}
	out := net.Conn(p)
	if p.first[0] == handshakeRecord {
		out = tls.Server(p, s.config)
	}
	select {
	case s.sorted <- out:
	case <-s.closed.Done():
		c.Close()
	}
}

// Accept implements [net.Listener].
func (s *sorter) Accept() (net.Conn, error) {
	select {
	case c := <-s.sorted:
		return c, nil
	case err := <-s.failed:
		return nil, err
	case <-s.closed.Done():
		return nil, net.ErrClosed
	}
}

// Close stops listening, and closes the connections that were not accepted yet.
func (s *sorter) Close() error {
	err := s.Listener.Close()
	s.close()
	s.running.Wait()
	return err
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
