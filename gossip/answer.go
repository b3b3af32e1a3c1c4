package gossip

import (
	"fmt"
	"time"

	"github.com/summarycache/summarycache/gossip/exchange"
)

// busyWait is how long a client should wait if all places for bodies are taken.
const busyWait = 100 * time.Millisecond

// answer handles one request.
func (h *host) answer(w *conn, peer string, t exchange.FrameType, payload []byte) error {
	switch t {
	case exchange.FrameGet:
		g, err := exchange.DecodeGet(payload)
		if err != nil {
			return err
		}
		return h.answerGet(w, peer, g)
	case exchange.FrameSync:
		heads, err := exchange.DecodeVector(payload)
		if err != nil {
			return err
		}
		var reply []exchange.Head
		h.update(func(e *exchange.Engine) { reply = e.HandleSync(time.Now(), peer, heads) })
		w.out = exchange.AppendVector(w.out[:0], exchange.FrameVector, reply)
		return w.writeAll(w.out)
	case exchange.FrameRecall:
		logs, err := h.removals.Answer(payload)
		if err != nil {
			return err
		}
		w.out = exchange.EndFrame(append(exchange.BeginFrame(w.out[:0], exchange.FrameLogs), logs...), 0)
		return w.writeAll(w.out)
	}
	return fmt.Errorf("%w: %v is no request", exchange.ErrMalformed, t)
}

func (h *host) answerGet(w *conn, peer string, g exchange.Get) error {
	var a exchange.Answer
	select {
	case h.serving <- struct{}{}:
		defer func() { <-h.serving }()
		h.with(func(e *exchange.Engine) { a = e.HandleGet(peer, g) })
	default:
		h.with(func(e *exchange.Engine) { a = e.Busy(busyWait) })
	}
	frame := a.AppendTo(nil)
	err := w.writeAll(frame)
	if err == nil {
		h.with(func(e *exchange.Engine) { e.Served(exchange.FrameType(frame[0])) })
	}
	return err
}
