// Package conn lets the header and the body of an HTTP answer leave a server
// together, and a body on disk without keeping memory for a client that is slow.
//
// net/http writes the header before it knows the body, and the body through a buffer of
// 4 KiB. That is one packet and one wake-up of the client too many, and these are most of the
// cost of an answer from a cache. [Listen] wraps the connections of a listener, [Context] puts
// them into the context of a request. With [Conn.Answer] a handler sends header and body at
// once. A body that net/http passes to [Conn.ReadFrom] needs no memory for a slow client either.
// [Quickly] serves plain requests without the server, which halves the cost of a hit and spares a miss a goroutine.
//
// Start from [Listen]. On connections that come from elsewhere, TLS above all,
// [Of] finds nothing, and a handler writes as ever.
package conn

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// maxJoins is up to which length a body is copied behind its header, which costs less than two
// places to write from.
const maxJoins = 8 << 10

// Listen returns a listener whose connections are each a [Conn] that the gate admitted; a nil
// gate admits all. Closing it closes l. A write fails with [os.ErrDeadlineExceeded] when the
// client has taken nothing for the time patience, or up to a quarter longer, and more than half of the
// gate's places are taken, or half of those of the client's address; 0 = it waits for ever. Without a
// gate it fails in any case. This ends for a connection when somebody sets a write deadline on it, or takes it over
// from the server.
func Listen(l net.Listener, patience time.Duration, gate *Gate) net.Listener {
	own := &listener{Listener: l, patience: patience, gate: gate, idle: make(chan struct{}), closed: make(chan struct{})}
	if gate != nil {
		gate.hold(own.hold)
		gate.SetPatience(patience)
	}
	return own
}

type listener struct {
	net.Listener
	patience time.Duration
	gate     *Gate
	held     atomic.Bool // accepts nothing more
	once     [2]sync.Once
	idle     chan struct{} // closed when nothing more is accepted indeed
	closed   chan struct{}
}

// hold leaves new connections to the system, which keeps them until somebody accepts them: another
// process, if it has the same socket.
func (l *listener) hold(ctx context.Context) {
	if d, ok := l.Listener.(interface{ SetDeadline(time.Time) error }); ok {
		l.held.Store(true)
		d.SetDeadline(time.Unix(1, 0))
		select {
		case <-l.idle:
		case <-l.closed:
		case <-ctx.Done():
		}
	}
}

// Close implements [net.Listener].
func (l *listener) Close() error {
	l.once[0].Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	for { // until the listener is closed, or there is room
		c, err := l.Listener.Accept()
		if err != nil && l.held.Load() {
			l.once[1].Do(func() { close(l.idle) })
			<-l.closed
			return nil, net.ErrClosed
		}
		if err != nil {
			return nil, err
		}
		patience := l.patience
		if l.gate != nil {
			patience = time.Duration(l.gate.patience.Load())
		}
		own := Patient(c, patience)
		if l.gate == nil || l.gate.admit(own, time.Now()) {
			return own, nil
		}
		c.Close()
	}
}

// A Conn is a connection that takes header and body of an answer at once. Like what it
// wraps it is safe for concurrent use, except for Buffer and Answer: these are for the
// handler of a request, while it runs.
type Conn struct {
	net.Conn
	raw      syscall.RawConn // nil = the system doesn't tell when it takes more
	patience patience
	pass     pass
	quick    *quick      // nil = the server reads all requests
	sealed   atomic.Bool // no request comes to a server from it directly: nothing says whether one is under way

	emptyLines int // bytes of empty lines that may still be dropped before a request; Read's

	replace bool   // send head in place of what the server writes next
	head    []byte // of an answer that is still to be sent, or lent by Buffer
}

type key struct{}

// Context is for [net/http.Server.ConnContext].
func Context(ctx context.Context, c net.Conn) context.Context {
	own := below(c)
	if own == nil {
		return ctx
	}
	_, encrypted := c.(*tls.Conn)
	own.sealed.Store(encrypted)
	return context.WithValue(ctx, key{}, own)
}

// Of returns the Conn of a request from the request's context; nil = it has none.
func Of(ctx context.Context) *Conn {
	if c := carrier(ctx); c != nil && !c.sealed.Load() {
		return c
	}
	return nil
}

// carrier returns the Conn by which a request came, also below TLS; nil = none.
func carrier(ctx context.Context) *Conn {
	c, _ := ctx.Value(key{}).(*Conn)
	return c
}

// Buffer returns an empty slice to append a header to, for Answer.
func (c *Conn) Buffer() []byte { return c.head[:0] }

// Answer sends header and body (nil = none) as the whole answer to a request.
// Nothing may be written to its [net/http.ResponseWriter], before or after, whose
// header must be empty: when the handler returns, the server writes an empty answer, which is
// dropped. A short answer is sent at this moment, like the server's own short answers.
// n counts bytes of the body. After an error of the body, ReadFrom may send the rest from
// elsewhere. After any other error the connection must be closed: panic with
// [net/http.ErrAbortHandler].
func (c *Conn) Answer(header []byte, body io.Reader) (n int64, err error) {
	c.head, c.replace = header, true
	if body == nil {
		return 0, nil
	}
	if b, ok := body.(memory); ok && len(b.Bytes()) <= maxJoins {
		c.head = append(c.head, b.Bytes()...)
		return int64(len(b.Bytes())), nil
	}
	return c.ReadFrom(body)
}

// writeHead writes what is to be sent of an answer, if anything is.
func (c *Conn) writeHead() error {
	if len(c.head) == 0 {
		return nil
	}
	_, err := c.write(c.head)
	c.head = c.head[:0]
	return err
}

// Write implements [net.Conn].
func (c *Conn) Write(p []byte) (int, error) {
	if c.replace {
		c.replace = false
		return len(p), c.writeHead()
	}
	c.refusal(p)
	return c.write(p)
}

// writeWithHead writes what is to be sent of an answer, and p, in one call. n counts bytes of p.
func (c *Conn) writeWithHead(p []byte) (n int64, err error) {
	both, before := net.Buffers{c.head, p}, int64(len(c.head)) // WriteTo drops what is written
	n, err = c.patiently(before+int64(len(p)), func(int64) (int64, error) { return both.WriteTo(c.Conn) })
	c.head = c.head[:0]
	return max(0, n-before), err
}

// ReadFrom writes a body, after the header that Answer had, if any. A body with a method
// Bytes() []byte goes along in one call and must not change meanwhile. One that
// comes in blocks, with the methods of [Blocks], is asked for a block whenever the
// client takes bytes, and keeps none while it doesn't. See [Spans] for what the
// kernel sends.
func (c *Conn) ReadFrom(body io.Reader) (int64, error) {
	if b, ok := body.(Blocks); ok && c.raw != nil {
		return c.sendBlocks(b)
	}
	if b, ok := body.(memory); ok {
		return c.writeWithHead(b.Bytes())
	}
	if err := c.writeHead(); err != nil {
		return 0, err
	}
	return c.copyFrom(body)
}

// A memory is a body that lies in memory.
type memory interface{ Bytes() []byte }

// Blocks is a body that comes in blocks.
type Blocks interface {
	Next() ([]byte, error) // the bytes that come next, at least one, good until the next call of a method; io.EOF at the end
	Advance(n int)         // n of them were sent
	Park()                 // no more are wanted for now
}

// Spans is a body in blocks, some of which the kernel may send from their file.
type Spans interface {
	Blocks
	Span() (f *os.File, off, n int64) // n of the bytes that come next are those from off on in f; n = 0: use Next
	Distrust()                        // the kernel couldn't send them: use Next
}

// WriteTo lets the kernel move bytes to another connection where it can.
func (c *Conn) WriteTo(w io.Writer) (int64, error) {
	if from, ok := c.Conn.(io.WriterTo); ok {
		return from.WriteTo(w)
	}
	return io.Copy(w, struct{ io.Reader }{c.Conn})
}

// CloseWrite passes on that no more will come.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Conn.Close()
}
