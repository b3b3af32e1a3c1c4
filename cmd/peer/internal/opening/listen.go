// Package opening reads what connections begin with before a server gets them, such as the header of the PROXY protocol.
// Start from [Listen].
package opening

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// An Opening says how connections are read before they are accepted.
type Opening struct {
	Wait time.Duration // for what Read reads
	Most int           // connections that are read at a time, beyond which new ones are closed; 0 = any number
	// Has reports whether a connection begins with something to be read; nil = all do. It must not block. Others are
	// accepted as they come.
	Has func(net.Conn) bool
	// Read reads that, in a goroutine of its own, and returns the connection as it is to be accepted. After an error the
	// connection is closed.
	Read func(net.Conn) (net.Conn, error)
}

// Listen returns a listener that accepts what l accepts, once it is read. Its Close closes l, and the connections that
// were not accepted yet.
func Listen(l net.Listener, o Opening) net.Listener {
	own := &listener{Listener: l, Opening: o, ready: make(chan accepted)}
	own.closed, own.close = context.WithCancel(context.Background())
	if o.Most > 0 {
		own.reading = make(chan struct{}, o.Most)
	}
	own.running.Go(own.accept)
	return own
}

type listener struct {
	net.Listener
	Opening
	ready   chan accepted
	reading chan struct{} // has an item for each connection that is being read; nil = any number may be
	closed  context.Context
	close   context.CancelFunc
	running sync.WaitGroup
}

type accepted struct {
	net.Conn
	err error
}

func (l *listener) accept() {
	for goes := true; goes; {
		c, err := l.Listener.Accept()
		switch {
		case err != nil || l.Has != nil && !l.Has(c):
			goes = l.deliver(c, err)
		case l.enter():
			l.running.Go(func() { l.read(c) })
		default: // none of so many has sent what it begins with
			c.Close()
		}
	}
}

// enter reports whether one more connection may be read.
func (l *listener) enter() bool {
	if l.reading == nil {
		return true
	}
	select {
	case l.reading <- struct{}{}:
		return true
	default:
		return false
	}
}

// read reads what a connection begins with, and has Accept return it.
func (l *listener) read(c net.Conn) {
	open := context.AfterFunc(l.closed, func() { c.Close() })
	c.SetReadDeadline(time.Now().Add(l.Wait))
	out, err := l.Read(c)
	c.SetReadDeadline(time.Time{})
	if l.reading != nil {
		<-l.reading
	}
	if !open() || err != nil {
		c.Close()
		return
	}
	l.deliver(out, nil)
}

// deliver has Accept return a connection, or an error, and reports whether the listener is open.
func (l *listener) deliver(c net.Conn, err error) bool {
	select {
	case l.ready <- accepted{c, err}:
		return true
	case <-l.closed.Done():
		if c != nil {
			c.Close()
		}
		return false
	}
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	select {
	case a := <-l.ready:
		return a.Conn, a.err
	case <-l.closed.Done():
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (l *listener) Close() error {
	err := l.Listener.Close()
	l.close()
	l.running.Wait()
	return err
}

// SetDeadline is for Accept.
func (l *listener) SetDeadline(t time.Time) error {
	if d, ok := l.Listener.(interface{ SetDeadline(time.Time) error }); ok {
		return d.SetDeadline(t)
	}
	return errors.ErrUnsupported
}
