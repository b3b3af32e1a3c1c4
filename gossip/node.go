package gossip

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/gossip/internal/background"
	"github.com/summarycache/summarycache/gossip/internal/guard"
	"github.com/summarycache/summarycache/gossip/internal/removals"
)

// Node is a peer of the cluster. Create one with [New].
//
// Its parts, of which each knows those before it and is called by them only through the functions that it gave
// them:
//
//	group     membership: memberlist and what guards it, the port, joining, discovery, secrets
//	removals  invalidations, which are not lost
//	host      runs the exchange: adverts, streams, replicas, the index
type Node struct {
	*base
	*host
	rotation sync.Mutex // held while secrets change
	claimed  atomic.Bool
	closed   sync.Once
}

// base is what all parts of a node share.
type base struct {
	cfg  Config
	log  *slog.Logger
	work *background.Group // for which Close waits
	ctx  context.Context   // of work: it ends with the node
}

// sleep waits. It returns false if the node ends meanwhile.
func (b *base) sleep(d time.Duration) bool {
	select {
	case <-b.ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// New creates a node and opens its port. It contacts no other peer: see [Node.Join]. Its error has
// all mistakes in cfg. Close the node at the end.
func New(cfg Config) (*Node, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	packets, listener, err := listenBoth(cfg.Network, cfg.Bind)
	if err != nil {
		return nil, fmt.Errorf("gossip: bind %s: %w", cfg.Bind, err)
	}
	advertise, err := advertised(cfg.Advertise, cfg.Join, guard.AddrPortOf(listener.Addr()))
	if err == nil {
		cfg.Service, err = serviceAt(cfg.Service, advertise.Addr())
	}
	var n *Node
	if err == nil {
		n = newNode(cfg, advertise)
		n.transport, n.acceptor = newTransport(n.group, packets), newAcceptor(n.group, listener)
		err = n.start()
	}
	if err != nil {
		packets.Close()
		listener.Close()
		if n != nil {
			n.work.Stop(err)
			n.work.Wait()
		}
		return nil, fmt.Errorf("gossip: %w", err)
	}
	return n, nil
}

// newNode puts the parts of a node together.
func newNode(cfg Config, advertise netip.AddrPort) *Node {
	b := &base{cfg: cfg, log: cfg.Logger, work: background.New()}
	b.ctx = b.work.Context()
	g := newGroup(b, advertise)
	gone := removals.New(removals.Config{
		Name: cfg.Name, Life: g.incarnation.Load(), Since: cfg.HeldSince, Log: b.log, Closed: ErrClosed,
		Work: b.work, Send: g.sendRemoval, Request: g.recall,
	})
	h := newHost(g, gone)
	g.callbacks = callbacks{
		datagram: h.datagram, question: h.question, removal: gone.Datagram, answer: h.answer, sum: h.knownSum, compare: h.compareSum,
		agreed: h.agreed, wake: h.wake,
	}
	return &Node{base: b, host: h}
}

// start loads the state file, publishes the present contents of the filter and starts all goroutines.
func (n *Node) start() error {
	if err := n.restore(); err != nil {
		return fmt.Errorf("%w: %w", ErrStateFile, err)
	}
	if held := n.cfg.Holdings; held != nil {
		if !held.published.CompareAndSwap(false, true) {
			return errors.New("these Holdings are published by another node: want some of its own for each")
		}
		n.publishFirst()
	}
	if err := n.group.start(); err != nil {
		n.unpublish()
		return err
	}
	n.host.start()
	n.removals.Start()
	return nil
}

// unpublish leaves the holdings to another node.
func (n *Node) unpublish() {
	if n.cfg.Holdings != nil {
		n.cfg.Holdings.published.Store(false)
	}
}

// made returns n, and panics if New has not made it.
func (n *Node) made() *Node {
	if n == nil || n.host == nil {
		panic("gossip: this Node is nil or the zero value: make one with New")
	}
	return n
}

// Addr returns the address at which others reach this node, ip:port.
func (n *Node) Addr() string { return n.made().advertise.String() }

// Name returns the name of this peer.
func (n *Node) Name() string { return n.made().cfg.Name }

// Holdings returns the contents that this peer advertises: Config.Holdings, or those that New
// created for Config.Objects; nil if this peer only listens.
func (n *Node) Holdings() *Holdings { return n.made().cfg.Holdings }

// Leave announces to the others that this peer leaves, so that they need not detect it, and closes
// the node as [Node.Close] does. It waits for the message to spread as long as ctx allows, at most five seconds. A
// program that ends calls Leave; Close is for one that fails or never joined, and for tests.
func (n *Node) Leave(ctx context.Context) error {
	if n.made().ctx.Err() != nil {
		return ErrClosed
	}
	if ctx == nil {
		return errNoContext
	}
	wait := 5 * time.Second
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, max(time.Until(deadline), time.Millisecond))
	}
	if !n.inLoop(n.sendFarewell) { // before memberlist's own
		return ErrClosed
	}
	err := n.leave(wait)
	return errors.Join(err, n.Close())
}

// Close stops the node at once; the others see a death, unless [Node.Leave] told them before. It saves the state file
// if there is one. It is safe to call several times, and after Leave.
func (n *Node) Close() error {
	n.made()
	var err error
	n.closed.Do(func() {
		n.work.Stop(ErrClosed)
		err = n.memberlist.Shutdown()
		n.acceptor.close()
		n.work.Wait()
		n.unpublish()
		n.pool.empty()
		if n.cfg.StateFile != "" {
			if e := n.save(); e != nil {
				err = errors.Join(err, fmt.Errorf("gossip: %w: %w", ErrStateFile, e))
			}
		}
	})
	return err
}
