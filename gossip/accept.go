package gossip

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/internal/guard"
	"github.com/summarycache/summarycache/gossip/internal/secrets"
)

// First bytes of incoming streams (PROTOCOL.md 2).
const (
	firstTLS        = 0x16
	firstMemberlist = 0xF4
	firstExchange   = exchange.StreamMagic0
)

// acceptor accepts streams on the node's port, within limits, and hands each to the part of the
// node that its first byte selects.
type acceptor struct {
	g        *group
	listener net.Listener

	mu      sync.Mutex
	conns   map[*accepted]struct{}
	perHost map[netip.Addr]int

	accepted, refused, strange atomic.Int64
}

func newAcceptor(g *group, listener net.Listener) *acceptor {
	return &acceptor{g: g, listener: listener, conns: make(map[*accepted]struct{}), perHost: make(map[netip.Addr]int)}
}

// accepted is a connection that counts towards the limits until it is closed.
type accepted struct {
	net.Conn
	a     *acceptor
	from  netip.Addr
	since time.Time

	// Guarded by a.mu.
	spoken bool              // its first byte has arrived
	public ed25519.PublicKey // of the secret that the other side proved to have; nil if it did not
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
			a.g.log.Error("accepting a connection failed", "err", err)
			time.Sleep(delay)
			delay = min(2*delay, time.Second)
			continue
		}
		delay = 5 * time.Millisecond
		if conn := a.admit(c); conn != nil && !a.g.work.Go(func() { a.sort(conn) }) {
			conn.Close()
		}
	}
}

// perStream is the memory of a connection in bytes: TLS, a buffer, goroutines.
const perStream = 24 << 10

// admit registers a connection, or closes it if there are too many. Beyond a limit, the oldest
// connection that has sent nothing yet is closed to make room.
func (a *acceptor) admit(c net.Conn) *accepted {
	from, limits := guard.AddrOf(c.RemoteAddr()), a.g.cfg.Limits
	conn := &accepted{Conn: a.g.meters.whole(c), a: a, from: from, since: time.Now()}
	a.mu.Lock()
	defer a.mu.Unlock()
	hostFull := a.perHost[from] >= limits.ConnsPerHost
	granted := limits.StreamMemory.Take(perStream)
	if hostFull || len(a.conns) >= limits.Conns || !granted {
		a.refused.Add(1)
		if old := a.silent(func(c *accepted) bool { return !hostFull || c.from == from }); old != nil {
			a.drop(old)
			old.Conn.Close()
			granted = granted || limits.StreamMemory.Take(perStream)
		}
	}
	switch {
	case a.g.ctx.Err() != nil: // see close
	case len(a.conns) >= limits.Conns || a.perHost[from] >= limits.ConnsPerHost || !granted:
		a.g.log.Warn("too many connections", "from", from, "connections", len(a.conns))
	default:
		a.accepted.Add(1)
		a.conns[conn] = struct{}{}
		a.perHost[from]++
		return conn
	}
	if granted {
		limits.StreamMemory.Give(perStream)
	}
	c.Close()
	return nil
}

// silent returns the oldest matching connection that has sent nothing; nil if there is none. It is
// called with a.mu held.
func (a *acceptor) silent(match func(*accepted) bool) (oldest *accepted) {
	for c := range a.conns {
		if !c.spoken && match(c) && (oldest == nil || c.since.Before(oldest.since)) {
			oldest = c
		}
	}
	return oldest
}

// drop unregisters a connection. It is called with a.mu held.
func (a *acceptor) drop(c *accepted) {
	if _, ok := a.conns[c]; !ok {
		return
	}
	delete(a.conns, c)
	a.g.cfg.Limits.StreamMemory.Give(perStream)
	if a.perHost[c.from]--; a.perHost[c.from] == 0 {
		delete(a.perHost, c.from)
	}
}

// close stops accepting and closes all connections, which ends their handlers. The node's context
// has ended before, so that admit registers no more.
func (a *acceptor) close() {
	a.listener.Close()
	a.closeConns(func(*accepted) bool { return true })
}

// expel closes the connections that were authenticated by a secret that is no longer accepted.
func (a *acceptor) expel() {
	a.closeConns(func(c *accepted) bool { return c.public != nil && !a.g.ring.Load().Accepts(c.public) })
}

func (a *acceptor) closeConns(match func(*accepted) bool) {
	a.mu.Lock()
	conns := slices.DeleteFunc(slices.Collect(maps.Keys(a.conns)), func(c *accepted) bool { return !match(c) })
	a.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
}

// peeked is a connection whose first bytes may be in a buffer.
type peeked struct {
	net.Conn
	in *bufio.Reader
}

func (p *peeked) Read(b []byte) (int, error) { return p.in.Read(b) }

// peek returns the first byte of c without consuming it. The buffer is as small as possible, so
// that larger reads bypass it.
func peek(c net.Conn) (*peeked, byte, error) {
	p := &peeked{c, bufio.NewReaderSize(c, 16)}
	b, err := p.in.Peek(1)
	if err != nil {
		return nil, 0, err
	}
	return p, b[0], nil
}

// sort reads the first byte of a stream, completes a TLS handshake, and hands the stream over.
func (a *acceptor) sort(c *accepted) {
	c.SetReadDeadline(time.Now().Add(firstByteWait))
	conn, first, err := peek(c)
	a.mu.Lock()
	c.spoken = true
	a.mu.Unlock()
	stream := a.g.ring.Load().Stream
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
		first = 0 // with a secret, streams outside TLS are closed
	}
	switch {
	case err != nil:
		c.Close()
	case first == firstMemberlist || first == guard.SumsByte:
		conn.SetReadDeadline(time.Time{})
		a.g.transport.handOver(a.g.meters.members(conn))
	case first == firstExchange:
		a.g.serve(newConn(conn, &a.g.meters))
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
		err = a.prove(conn, secrets.Shown(t.ConnectionState()))
	}
	if err != nil {
		if !a.g.noteCluster(err, "", conn.from.String()) && !brokeOff(err) {
			a.g.log.Error("refused a peer that does not prove to have this cluster's secret",
				"from", conn.from, "member", membersAt{a.g, conn.from}, "err", err)
		}
		return nil, 0, err
	}
	t.SetReadDeadline(time.Now().Add(firstByteWait))
	return peek(t)
}

// brokeOff reports whether a handshake failed because the connection ended, as when a peer stops,
// and not because the secrets differ.
func brokeOff(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Op == "read" || op.Op == "write" // and not "remote error", an alert
	}
	return slices.ContainsFunc([]error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, os.ErrDeadlineExceeded, context.DeadlineExceeded},
		func(end error) bool { return errors.Is(err, end) })
}

// prove records the key by which a connection proved to have a secret, if that is still accepted.
func (a *acceptor) prove(c *accepted, public ed25519.PublicKey) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.g.ring.Load().Accepts(public) {
		return exchange.ErrSecret
	}
	c.public = public
	return nil
}

// refuse tells a peer that only one of the two sides has a secret, and closes the connection. It
// first reads for a while what the other side is still sending: an immediate close could reset the
// connection before the refusal has arrived.
func (a *acceptor) refuse(c *peeked, from netip.Addr, logged, text string) {
	defer c.Close()
	a.strange.Add(1)
	a.g.log.Error(logged, "from", from, "member", membersAt{a.g, from})
	c.SetDeadline(time.Now().Add(time.Second))
	r := exchange.Refusal{Err: exchange.ErrSecret, Text: text}
	if _, err := c.Write(r.AppendTo(nil)); err == nil {
		c.in.Discard(64 << 10)
	}
}
