package gossip

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/gossip/exchange"
)

// First bytes of incoming streams (PROTOCOL.md 2).
const (
	firstTLS        = 0x16
	firstMemberlist = 0xF4
	firstExchange   = exchange.StreamMagic0
)

// acceptor takes streams on the node's port, within bounds, and passes each on
// to the part that its first byte names.
type acceptor struct {
	n        *Node
	listener net.Listener

	mu      sync.Mutex
	conns   map[*accepted]struct{}
	perHost map[netip.Addr]int
	wg      sync.WaitGroup

	accepted, refused, strange atomic.Int64
}

func newAcceptor(n *Node, listener net.Listener) *acceptor {
	return &acceptor{n: n, listener: listener, conns: make(map[*accepted]struct{}), perHost: make(map[netip.Addr]int)}
}

// accepted is a connection that counts until it is closed.
type accepted struct {
	net.Conn
	a    *acceptor
	from netip.Addr

	since  time.Time // accepted
	spoken bool      // its first byte has come; guarded by a.mu

	public ed25519.PublicKey // what it proved a secret by; nil if it did not; guarded by a.mu
}

func (c *accepted) Close() error {
	err := c.Conn.Close()
	c.a.mu.Lock()
	defer c.a.mu.Unlock()
	c.a.drop(c)
	return err
}

func (a *acceptor) loop() {
	for delay := 5 * time.Millisecond; ; {
		c, err := a.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			a.n.log.Error("accepting a connection failed", "err", err)
			time.Sleep(delay)
			delay = min(2*delay, time.Second)
			continue
		}
		delay = 5 * time.Millisecond
		if conn := a.admit(c); conn != nil {
			a.wg.Go(func() { a.sort(conn) })
		}
	}
}

// admit counts a connection in, or closes it. The oldest that has said nothing yet makes room
// for it.
func (a *acceptor) admit(c net.Conn) *accepted {
	from, limits := addrOf(c.RemoteAddr()), a.n.cfg.Limits
	conn := &accepted{Conn: a.n.meters.whole(c), a: a, from: from, since: time.Now()}
	a.mu.Lock()
	defer a.mu.Unlock()
	crowded := a.perHost[from] >= limits.ConnsPerHost
	if crowded || len(a.conns) >= limits.Conns {
		a.refused.Add(1)
		if old := a.silent(func(c *accepted) bool { return !crowded || c.from == from }); old != nil {
			a.drop(old)
			old.Conn.Close()
		}
	}
	switch {
	case a.n.ctx.Err() != nil: // see close
	case len(a.conns) >= limits.Conns || a.perHost[from] >= limits.ConnsPerHost:
		a.n.quiet.log(slog.LevelWarn, "cap", "too many connections", "from", from, "connections", len(a.conns))
	default:
		a.accepted.Add(1)
		a.conns[conn] = struct{}{}
		a.perHost[from]++
		return conn
	}
	c.Close()
	return nil
}

// silent returns the oldest connection that has said nothing, of those that match;
// nil if there is none. It is called with a.mu held.
func (a *acceptor) silent(match func(*accepted) bool) (oldest *accepted) {
	for c := range a.conns {
		if !c.spoken && match(c) && (oldest == nil || c.since.Before(oldest.since)) {
			oldest = c
		}
	}
	return oldest
}

// drop is called with a.mu held.
func (a *acceptor) drop(c *accepted) {
	if _, ok := a.conns[c]; !ok {
		return
	}
	delete(a.conns, c)
	if a.perHost[c.from]--; a.perHost[c.from] == 0 {
		delete(a.perHost, c.from)
	}
}

// close stops accepting, breaks all connections and waits for their handlers. The node's
// context has ended before, so that admit counts nobody in any more.
func (a *acceptor) close() {
	a.listener.Close()
	a.closeConns(func(*accepted) bool { return true })
	a.wg.Wait()
}

// expel closes the connections of those who proved to have a secret that is no longer
// accepted.
func (a *acceptor) expel() {
	a.closeConns(func(c *accepted) bool { return c.public != nil && !a.n.ring.Load().accepts(c.public) })
}

func (a *acceptor) closeConns(match func(*accepted) bool) {
	a.mu.Lock()
	conns := slices.DeleteFunc(slices.Collect(maps.Keys(a.conns)), func(c *accepted) bool { return !match(c) })
	a.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
}

// peeked is a connection of which something has been read ahead.
type peeked struct {
	net.Conn
	in *bufio.Reader
}

func (p *peeked) Read(b []byte) (int, error) { return p.in.Read(b) }

// peek reads the first byte of c ahead. The buffer is as small as can be: whoever
// reads larger pieces than it holds reads past it.
func peek(c net.Conn) (*peeked, byte, error) {
	p := &peeked{c, bufio.NewReaderSize(c, 16)}
	b, err := p.in.Peek(1)
	if err != nil {
		return nil, 0, err
	}
	return p, b[0], nil
}

// sort reads the first byte of a stream, unwraps TLS, and hands the stream over.
func (a *acceptor) sort(c *accepted) {
	c.SetReadDeadline(time.Now().Add(firstByteWait))
	conn, first, err := peek(c)
	a.mu.Lock()
	c.spoken = true
	a.mu.Unlock()
	stream := a.n.ring.Load().stream
	switch {
	case err != nil:
	case stream != nil && first == firstTLS:
		conn, first, err = a.unwrap(c, conn, stream)
	case stream != nil && first == firstExchange:
		a.refuse(conn, c.from, "refused a peer that has no secret; this one has", "this cluster has a secret")
		return
	case stream == nil && first == firstTLS:
		a.refuse(conn, c.from, "refused a peer that has a secret; this one has none", "this peer has no secret")
		return
	case stream != nil:
		first = 0 // what is not in TLS is nobody's
	}
	switch {
	case err != nil:
		c.Close()
	case first == firstMemberlist:
		conn.SetReadDeadline(time.Time{})
		a.n.transport.handOver(a.n.meters.members(conn))
	case first == firstExchange:
		a.n.serve(newWire(conn, &a.n.meters))
		c.Close()
	default:
		a.strange.Add(1)
		c.Close()
	}
}

// unwrap does the TLS handshake and reads the first byte inside.
func (a *acceptor) unwrap(conn *accepted, c *peeked, config *tls.Config) (*peeked, byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), frameWait)
	defer cancel()
	t := tls.Server(c, config)
	err := t.HandshakeContext(ctx)
	if err == nil {
		err = a.prove(conn, shown(t.ConnectionState()))
	}
	if err != nil {
		if !brokeOff(err) {
			a.n.quiet.log(slog.LevelError, "handshake "+conn.from.String(), "refused a peer that does not prove to have this cluster's secret",
				"from", conn.from, "member", membersAt{a.n, conn.from}, "err", err)
		}
		return nil, 0, err
	}
	t.SetReadDeadline(time.Now().Add(firstByteWait))
	return peek(t)
}

// brokeOff reports whether a connection ended before the other side objected to the
// secret, as the connections of a peer that stops do.
func brokeOff(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Op == "read" || op.Op == "write" // and not "remote error", an alert
	}
	return slices.ContainsFunc([]error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, os.ErrDeadlineExceeded, context.DeadlineExceeded},
		func(end error) bool { return errors.Is(err, end) })
}

// prove notes by what a connection proved to have a secret, if that is still accepted.
func (a *acceptor) prove(c *accepted, public ed25519.PublicKey) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.n.ring.Load().accepts(public) {
		return exchange.ErrSecret
	}
	c.public = public
	return nil
}

// refuse sends a refusal to a peer with another idea of the secret, and closes. It reads what the other side is still
// sending, for a while: closing at once could destroy the refusal on its way.
func (a *acceptor) refuse(c *peeked, from netip.Addr, logged, text string) {
	defer c.Close()
	a.strange.Add(1)
	a.n.quiet.log(slog.LevelError, "refuse "+from.String(), logged, "from", from, "member", membersAt{a.n, from})
	c.SetDeadline(time.Now().Add(time.Second))
	r := exchange.Refusal{Err: exchange.ErrSecret, Text: text}
	if _, err := c.Write(r.AppendTo(nil)); err == nil {
		c.in.Discard(64 << 10)
	}
}
