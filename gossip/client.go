package gossip

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/internal/guard"
	"github.com/summarycache/summarycache/gossip/internal/secrets"
)

const (
	dialWait   = 5 * time.Second
	answerWait = 15 * time.Second // for the first byte of an answer, whose body may have to be encoded first
)

// dial opens a stream to another peer's port, in TLS if there is a secret.
func (g *group) dial(ctx context.Context, addr string) (net.Conn, error) {
	c, err := g.cfg.Network.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	c = g.meters.whole(c)
	ring := g.ring.Load()
	if ring.Stream == nil {
		return c, nil
	}
	t := tls.Client(c, ring.Dialling())
	if err = t.HandshakeContext(ctx); err == nil {
		err = ring.Check(t.ConnectionState())
	}
	if err != nil {
		c.Close()
		return nil, secrets.Meaning(err)
	}
	return t, nil
}

// connect opens a stream to the peer at addr and exchanges hello and welcome.
func (g *group) connect(ctx context.Context, addr string, joining bool) (*conn, exchange.Welcome, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWait)
	defer cancel()
	under, seeds := g.ring.Load(), g.digestSeeds()
	c, err := g.dial(ctx, addr)
	if err != nil {
		g.noteCluster(err, "", addr)
		return nil, exchange.Welcome{}, unreachable(err)
	}
	stop := context.AfterFunc(ctx, func() { c.Close() })
	w := newConn(c, &g.meters)
	w.under = under
	welcome, err := w.greet(exchange.Hello{
		MinVersion:  exchange.ProtocolVersion,
		MaxVersion:  exchange.ProtocolVersion,
		Joining:     joining,
		Incarnation: g.incarnation.Load(),
		Canary:      canaryOf(seeds[0]),
		Name:        g.cfg.Name,
		Address:     g.advertise.String(),
		Cluster:     g.cfg.Cluster,
	})
	if errors.As(err, new(*exchange.Refusal)) && joining {
		g.joinsRefused.Add(1)
	}
	if !stop() && (err == nil || errors.Is(err, net.ErrClosed)) {
		err = fmt.Errorf("no answer in time: %w", ctx.Err())
	}
	var refusal *exchange.Refusal
	switch {
	case errors.As(err, &refusal) && refusal.Err == exchange.ErrCluster:
		err = &secrets.ClusterError{Ours: g.cfg.Cluster, Theirs: refusal.Text}
	case err == nil && welcome.Cluster != g.cfg.Cluster:
		err = &secrets.ClusterError{Ours: g.cfg.Cluster, Theirs: welcome.Cluster}
	case err == nil && !slices.Contains(canariesOf(seeds), welcome.Canary):
		err = exchange.ErrCanary
	}
	g.noteCluster(err, "", addr)
	if err != nil {
		c.Close()
		return nil, exchange.Welcome{}, unreachable(err)
	}
	g.welcomed(welcome.Name, welcome.Known)
	return w, welcome, nil
}

// unreachable adds ErrUnreachable to an error without a sentinel of its own.
func unreachable(err error) error {
	for _, known := range []error{
		exchange.ErrSecret, exchange.ErrNameTaken, exchange.ErrVersion, exchange.ErrCanary,
		exchange.ErrCluster, exchange.ErrMembers, exchange.ErrBusy, context.Canceled,
	} {
		if errors.Is(err, known) {
			return err
		}
	}
	if errors.Is(err, exchange.ErrMalformed) {
		return fmt.Errorf("%w: the address is not the gossip port of a peer: %w", ErrUnreachable, err)
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}

// pool keeps idle connections for later requests.
type pool struct {
	mu   sync.Mutex
	idle []idleWire // oldest first
}

type idleWire struct {
	addr  string
	wire  *conn
	since time.Time
}

const (
	poolPerPeer = 2
	poolSize    = 512
)

// take returns the connection to addr that was used last; nil if there is none.
func (p *pool) take(addr string) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, w := range slices.Backward(p.idle) {
		if w.addr == addr {
			p.idle = slices.Delete(p.idle, i, i+1)
			return w.wire
		}
	}
	return nil
}

// put keeps w for a later request, unless there are enough or the secrets have changed since it was
// opened.
func (p *pool) put(addr string, w *conn, now *secrets.Ring) {
	p.mu.Lock()
	same := 0
	for _, w := range p.idle {
		if w.addr == addr {
			same++
		}
	}
	keep := same < poolPerPeer && len(p.idle) < poolSize && w.under == now
	if keep {
		p.idle = append(p.idle, idleWire{addr, w, time.Now()})
	}
	p.mu.Unlock()
	if !keep {
		w.Close()
	}
}

// prune closes the connections that became idle before a time. It does not hold the lock
// meanwhile: a TLS stream sends an alert when it is closed, which waits if the other end does not
// read.
func (p *pool) prune(before time.Time) {
	p.mu.Lock()
	n := 0
	for n < len(p.idle) && p.idle[n].since.Before(before) {
		n++
	}
	old := slices.Clone(p.idle[:n])
	p.idle = slices.Delete(p.idle, 0, n)
	p.mu.Unlock()
	for _, w := range old {
		w.wire.Close()
	}
}

// empty closes all idle connections.
func (p *pool) empty() { p.prune(time.Now().Add(time.Second)) }

// request sends a frame to the peer called name at addr and reads its answer. The other side may have closed
// a connection from the pool: then request tries another. room claims the memory of the answer.
func (g *group) request(name, addr string, frame []byte, room func(bytes int) error) (exchange.FrameType, []byte, error) {
	for {
		w := g.pool.take(addr)
		kept := w != nil
		if !kept {
			var welcome exchange.Welcome
			var err error
			if w, welcome, err = g.connect(g.ctx, addr, false); err != nil {
				return 0, nil, err
			}
			g.meet(welcome.Name, welcome.Incarnation, welcome.Address, guard.AddrOf(w.RemoteAddr()))
			if welcome.Name != name {
				w.Close()
				if at, err := netip.ParseAddrPort(addr); err == nil && welcome.Address == addr {
					g.transport.screen.Displaced(welcome.Name, at)
				}
				return 0, nil, fmt.Errorf("%w: the peer at %s is %s", ErrUnreachable, addr, welcome.Name)
			}
		}
		t, payload, err := g.roundTrip(w, frame, room)
		if err == nil {
			g.pool.put(addr, w, g.ring.Load())
			return t, payload, nil
		}
		w.Close()
		if !kept || g.ctx.Err() != nil || errors.Is(err, digest.ErrTooLarge) {
			return 0, nil, err
		}
	}
}

func (g *group) roundTrip(w *conn, frame []byte, room func(bytes int) error) (exchange.FrameType, []byte, error) {
	stop := context.AfterFunc(g.ctx, func() { w.Close() })
	defer stop()
	if err := w.writeAll(frame); err != nil {
		return 0, nil, err
	}
	w.room = room
	defer func() { w.room = nil }()
	return w.readFrame(answerWait, g.cfg.Limits.DigestBytes+exchange.MaxAdvert)
}

// addressOf returns the gossip address of a live member.
func (g *group) addressOf(name string) (string, bool) {
	m := g.live(name)
	if m == nil {
		return "", false
	}
	return m.info.Load().addr.String(), true
}
