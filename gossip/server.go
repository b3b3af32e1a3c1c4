package gossip

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/internal/guard"
	"github.com/summarycache/summarycache/gossip/internal/secrets"
)

// serve answers one stream of the exchange, until the client ends it or is silent for too long.
func (g *group) serve(w *conn) {
	w.SetReadDeadline(time.Now().Add(firstByteWait))
	if magic, err := w.in.Peek(2); err != nil || magic[1] != exchange.StreamMagic1 {
		return
	}
	w.in.Discard(2)
	w.meter.in.stream(kindGreetings, 2)
	peer, err := g.welcome(w)
	if err != nil {
		return
	}
	for {
		t, payload, err := w.readFrame(serverIdle, 0)
		if err != nil {
			g.strange(w, "request", err)
			return
		}
		if err := g.callbacks.answer(w, peer, t, payload); err != nil {
			g.strange(w, "request", err)
			return
		}
	}
}

// strange logs a malformed message.
func (g *group) strange(w *conn, what string, err error) {
	if errors.Is(err, exchange.ErrMalformed) {
		g.log.Warn("malformed "+what, "from", guard.AddrOf(w.RemoteAddr()), "err", err)
	}
}

// welcome reads a hello and answers it. It returns the client's name.
func (g *group) welcome(w *conn) (string, error) {
	t, payload, err := w.readFrame(frameWait, 0)
	if err == nil && t != exchange.FrameHello {
		err = fmt.Errorf("%w: %v instead of hello", exchange.ErrMalformed, t)
	}
	var h exchange.Hello
	if err == nil {
		h, err = exchange.DecodeHello(payload)
	}
	if err != nil {
		g.strange(w, "hello", err)
		return "", err
	}
	from, seeds := guard.AddrOf(w.RemoteAddr()), g.digestSeeds()
	if h.Cluster != g.cfg.Cluster {
		g.noteCluster(&secrets.ClusterError{Ours: g.cfg.Cluster, Theirs: h.Cluster}, h.Name, from.String())
		r := &exchange.Refusal{Err: exchange.ErrCluster, Text: g.cfg.Cluster}
		w.writeAll(r.AppendTo(nil))
		return "", r
	}
	err = h.Accept(canariesOf(seeds)...)
	text := ""
	if errors.Is(err, exchange.ErrVersion) {
		text, err = err.Error(), exchange.ErrVersion
	} else if err == nil && h.Joining {
		if text, err = g.nameTaken(h); err == nil && g.known(h.Name) == 0 {
			at, _ := netip.ParseAddrPort(h.Address)
			if full := g.transport.screen.Room(h.Name, at); full != nil {
				text, err = full.Error(), exchange.ErrMembers
			}
		}
	}
	if err != nil {
		g.log.Error("refused a peer",
			"member", h.Name, "addr", h.Address, "from", from, "err", err, "detail", text)
		r := &exchange.Refusal{Err: err, Text: text}
		w.writeAll(r.AppendTo(nil))
		return "", err
	}
	g.connected(h.Name, h.Address)
	welcome := exchange.Welcome{
		Version:     exchange.ProtocolVersion,
		Incarnation: g.incarnation.Load(),
		Canary:      canaryOf(seeds[0]),
		Known:       g.known(h.Name),
		Name:        g.cfg.Name,
		Address:     g.advertise.String(),
		Cluster:     g.cfg.Cluster,
	}
	if !h.Joining {
		g.meet(h.Name, h.Incarnation, h.Address, from)
	}
	return h.Name, w.writeAll(welcome.AppendTo(nil))
}

// known returns the incarnation of a live member; 0 if there is none of that name.
func (g *group) known(name string) uint64 {
	if m := g.live(name); m != nil {
		return m.info.Load().meta.Incarnation
	}
	return 0
}

// nameTaken returns an error, with an explanation, if a newcomer's name belongs to another live peer.
func (g *group) nameTaken(h exchange.Hello) (string, error) {
	if h.Name == g.cfg.Name {
		if h.Incarnation == g.incarnation.Load() {
			return "", nil // this node itself, which is one of its own seeds
		}
		return fmt.Sprintf("%s is this very peer, at %s", h.Name, g.advertise), exchange.ErrNameTaken
	}
	m := g.live(h.Name)
	if m == nil {
		return "", nil
	}
	info := m.info.Load()
	if info.meta.Incarnation == h.Incarnation || info.addr.String() == h.Address {
		return "", nil // the member itself, or restarted at the same address
	}
	ctx, cancel := context.WithTimeout(g.ctx, nameCheckWait)
	defer cancel()
	other, welcome, err := g.connect(ctx, info.addr.String(), false)
	if err != nil {
		return "", nil // a former life of the newcomer, not yet declared dead
	}
	other.Close()
	if welcome.Name != h.Name {
		return "", nil
	}
	return fmt.Sprintf("%s is at %s", h.Name, info.addr), exchange.ErrNameTaken
}

// nameCheckWait is how long nameTaken waits for the member with the name.
const nameCheckWait = 2 * time.Second
