package gossip

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/internal/guard"
)

// busyWait is how long a client should wait if all places for bodies are taken.
const busyWait = 100 * time.Millisecond

// serve answers one stream of the exchange, until the client ends it or is silent for too long.
func (n *Node) serve(w *conn) {
	w.SetReadDeadline(time.Now().Add(firstByteWait))
	if magic, err := w.in.Peek(2); err != nil || magic[1] != exchange.StreamMagic1 {
		return
	}
	w.in.Discard(2)
	w.meter.in.stream(Greetings, 2)
	peer, err := n.welcome(w)
	if err != nil {
		return
	}
	for {
		t, payload, err := w.readFrame(serverIdle, 0)
		if err != nil {
			n.strange(w, "request", err)
			return
		}
		if err := n.answer(w, peer, t, payload); err != nil {
			n.strange(w, "request", err)
			return
		}
	}
}

// strange logs a malformed message.
func (n *Node) strange(w *conn, what string, err error) {
	if errors.Is(err, exchange.ErrMalformed) {
		n.log.Warn("malformed "+what, "from", guard.AddrOf(w.RemoteAddr()), "err", err)
	}
}

// welcome reads a hello and answers it. It returns the client's name.
func (n *Node) welcome(w *conn) (string, error) {
	t, payload, err := w.readFrame(frameWait, 0)
	if err == nil && t != exchange.FrameHello {
		err = fmt.Errorf("%w: %v instead of hello", exchange.ErrMalformed, t)
	}
	var h exchange.Hello
	if err == nil {
		h, err = exchange.DecodeHello(payload)
	}
	if err != nil {
		n.strange(w, "hello", err)
		return "", err
	}
	seeds := n.digestSeeds()
	err = h.Accept(canariesOf(seeds)...)
	text := ""
	if errors.Is(err, exchange.ErrVersion) {
		text, err = err.Error(), exchange.ErrVersion
	} else if err == nil && h.Joining {
		text, err = n.nameTaken(h)
	}
	if err != nil {
		n.log.Error("refused a peer",
			"member", h.Name, "addr", h.Address, "from", guard.AddrOf(w.RemoteAddr()), "err", err, "detail", text)
		r := &exchange.Refusal{Err: err, Text: text}
		w.writeAll(r.AppendTo(nil))
		return "", err
	}
	welcome := exchange.Welcome{
		Version:     exchange.ProtocolVersion,
		Incarnation: n.incarnation.Load(),
		Canary:      canaryOf(seeds[0]),
		Known:       n.known(h.Name),
		Name:        n.cfg.Name,
		Address:     n.advertise.String(),
	}
	if !h.Joining {
		n.meet(h.Name, h.Incarnation, h.Address, guard.AddrOf(w.RemoteAddr()))
	}
	return h.Name, w.writeAll(welcome.AppendTo(nil))
}

// known returns the incarnation of a live member; 0 if there is none of that name.
func (n *Node) known(name string) uint64 {
	if m := n.live(name); m != nil {
		return m.info.Load().meta.Incarnation
	}
	return 0
}

// nameTaken returns an error, with an explanation, if a newcomer's name belongs to another live peer.
func (n *Node) nameTaken(h exchange.Hello) (string, error) {
	if h.Name == n.cfg.Name {
		if h.Incarnation == n.incarnation.Load() {
			return "", nil // this node itself, which is one of its own seeds
		}
		return fmt.Sprintf("%s is this very peer, at %s", h.Name, n.advertise), exchange.ErrNameTaken
	}
	m := n.live(h.Name)
	if m == nil {
		return "", nil
	}
	info := m.info.Load()
	if info.meta.Incarnation == h.Incarnation || info.addr.String() == h.Address {
		return "", nil // the member itself, or restarted at the same address
	}
	ctx, cancel := context.WithTimeout(n.ctx, nameCheckWait)
	defer cancel()
	other, welcome, err := n.connect(ctx, info.addr.String(), false)
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

// answer handles one request.
func (n *Node) answer(w *conn, peer string, t exchange.FrameType, payload []byte) error {
	switch t {
	case exchange.FrameGet:
		g, err := exchange.DecodeGet(payload)
		if err != nil {
			return err
		}
		return n.answerGet(w, peer, g)
	case exchange.FrameSync:
		heads, err := exchange.DecodeVector(payload)
		if err != nil {
			return err
		}
		var reply []exchange.Head
		n.update(func(e *exchange.Engine) { reply = e.HandleSync(time.Now(), peer, heads) })
		w.out = exchange.AppendVector(w.out[:0], exchange.FrameVector, reply)
		return w.writeAll(w.out)
	case exchange.FrameRecall:
		n.invalidations.mu.Lock()
		logs, err := n.invalidations.engine.HandleRecall(time.Now(), payload)
		n.invalidations.mu.Unlock()
		if err != nil {
			return err
		}
		w.out = exchange.EndFrame(append(exchange.BeginFrame(w.out[:0], exchange.FrameLogs), logs...), 0)
		return w.writeAll(w.out)
	}
	return fmt.Errorf("%w: %v is no request", exchange.ErrMalformed, t)
}

func (n *Node) answerGet(w *conn, peer string, g exchange.Get) error {
	var a exchange.Answer
	select {
	case n.serving <- struct{}{}:
		defer func() { <-n.serving }()
		n.with(func(e *exchange.Engine) { a = e.HandleGet(peer, g) })
	default:
		n.with(func(e *exchange.Engine) { a = e.Busy(busyWait) })
	}
	frame := n.bodies.frame(a)
	err := w.writeAll(frame)
	if err == nil {
		n.with(func(e *exchange.Engine) { e.Served(exchange.FrameType(frame[0])) })
	}
	return err
}
