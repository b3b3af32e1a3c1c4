package gossip

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/internal/secrets"
	"github.com/summarycache/summarycache/gossip/internal/wire"
)

// Timeouts of a stream (PROTOCOL.md 8).
const (
	firstByteWait = 5 * time.Second  // for the first byte
	frameWait     = 10 * time.Second // for progress within a frame
	serverIdle    = 60 * time.Second // between a client's requests
	clientIdle    = 30 * time.Second // for which a client keeps a connection for the next request
)

// progress is the number of bytes that must be received or sent within frameWait.
const progress = 64 << 10

// streamBuffer is the buffer of a connection in bytes. It holds all frames but bodies, vectors and logs, of which
// larger reads bypass it. Most connections wait for a request that does not come: a peer that joins opens one to each
// other.
const streamBuffer = 256

// conn is a connection for frames. It is used by one goroutine at a time.
type conn struct {
	net.Conn
	in    *bufio.Reader
	out   []byte
	under *secrets.Ring // the secrets when a client opened it
	meter *meters
	room  func(bytes int) error // asked before a payload is read; nil = there is room
}

func newConn(c net.Conn, m *meters) *conn {
	return &conn{Conn: c, in: bufio.NewReaderSize(c, streamBuffer), meter: m}
}

// readFrame reads a frame whose payload, if it is a body, has at most limit bytes. The first byte may
// take as long as wait; then the other side must make progress. Memory is allocated as bytes arrive,
// not by the length in the header.
func (w *conn) readFrame(wait time.Duration, limit int) (exchange.FrameType, []byte, error) {
	w.SetReadDeadline(time.Now().Add(wait))
	if _, err := w.in.Peek(1); err != nil {
		return 0, nil, err
	}
	w.SetReadDeadline(time.Now().Add(frameWait))
	var header [exchange.FrameHeader]byte
	if _, err := io.ReadFull(w.in, header[:]); err != nil {
		return 0, nil, wire.Unexpected(err)
	}
	t, n, err := exchange.DecodeFrameHeader(header, limit)
	if err != nil {
		return 0, nil, err
	}
	w.meter.in.frame(t, exchange.FrameHeader)
	if w.room != nil {
		if err := w.room(n); err != nil {
			return 0, nil, err
		}
	}
	payload := make([]byte, 0, min(n, progress))
	defer func() { w.meter.in.frame(t, len(payload)) }()
	for len(payload) < n {
		w.SetReadDeadline(time.Now().Add(frameWait))
		start := len(payload)
		if start == cap(payload) {
			payload = append(make([]byte, 0, min(n, 2*start)), payload...)
		}
		payload = payload[:min(cap(payload), start+progress, n)]
		if got, err := io.ReadFull(w.in, payload[start:]); err != nil {
			payload = payload[:start+got] // for the meter
			return 0, nil, wire.Unexpected(err)
		}
	}
	return t, payload, nil
}

// writeAll writes b, a frame or the beginning of a stream, in pieces, each of which must be sent
// within frameWait.
func (w *conn) writeAll(b []byte) error {
	t := exchange.FrameType(b[0])
	for len(b) > 0 {
		w.SetWriteDeadline(time.Now().Add(frameWait))
		n, err := w.Write(b[:min(len(b), progress)])
		w.meter.out.frame(t, n)
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// greet begins a stream as a client: it sends hello and reads the answer. A refusal is returned as
// *exchange.Refusal.
func (w *conn) greet(h exchange.Hello) (exchange.Welcome, error) {
	w.out = append(w.out[:0], exchange.StreamMagic0, exchange.StreamMagic1)
	w.out = h.AppendTo(w.out)
	if err := w.writeAll(w.out); err != nil {
		return exchange.Welcome{}, err
	}
	t, payload, err := w.readFrame(frameWait, 0)
	if err != nil {
		return exchange.Welcome{}, err
	}
	switch t {
	case exchange.FrameWelcome:
		return exchange.DecodeWelcome(payload)
	case exchange.FrameRefuse:
		r, err := exchange.DecodeRefusal(payload)
		if err != nil {
			return exchange.Welcome{}, err
		}
		return exchange.Welcome{}, r
	}
	return exchange.Welcome{}, fmt.Errorf("%w: %v in answer to hello", exchange.ErrMalformed, t)
}
