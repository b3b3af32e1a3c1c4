package gossip

import (
	"fmt"
	"time"

	"github.com/summarycache/summarycache/gossip/exchange"
)

// fetch does a fetch for the engine.
func (h *host) fetch(f exchange.Fetch) {
	c := incoming{of: &h.digests}
	r := h.get(f, &c)
	if r.Err == nil && r.Filter != nil {
		r.Err = h.digests.add(f.Base, r.Filter, c.bytes)
		c.bytes = 0
		if r.Err != nil {
			r.Filter, r.Delta = nil, nil
		}
	}
	c.release()
	h.update(func(e *exchange.Engine) { e.FetchDone(time.Now(), f.Number, r) })
}

func (h *host) get(f exchange.Fetch, c *incoming) exchange.Result {
	if f.Step != nil {
		return exchange.DecodeChange(f, h.digestLimits)
	}
	addr, ok := h.addressOf(f.Source)
	if !ok {
		return exchange.Result{Err: ErrUnreachable}
	}
	t, payload, err := h.request(f.Source, addr, f.Get.AppendTo(nil), c.room)
	if err != nil {
		return exchange.Result{Err: err}
	}
	return exchange.DecodeAnswer(f, t, payload, h.digestLimits, h.digestSeeds()...)
}

// sync does a sync for the engine.
func (h *host) sync(s exchange.Sync) {
	heads, err := h.vector(s)
	h.update(func(e *exchange.Engine) { e.SyncDone(time.Now(), s.Peer, heads, err) })
	if err != nil {
		return
	}
	h.removals.Recall(s.Peer)
	if m := h.live(s.Peer); m != nil && (h.cfg.Light || m.info.Load().meta.Light) {
		// the vector lists one digest alone, and the sums differ in something else
		h.merge(m.name, m.info.Load().addr.String())
	}
}

func (h *host) vector(s exchange.Sync) ([]exchange.Head, error) {
	addr, ok := h.addressOf(s.Peer)
	if !ok {
		return nil, ErrUnreachable
	}
	c := incoming{of: &h.digests}
	defer c.release()
	t, payload, err := h.request(s.Peer, addr, exchange.AppendVector(nil, exchange.FrameSync, s.Heads), c.room)
	if err != nil {
		return nil, err
	}
	if t != exchange.FrameVector {
		return nil, fmt.Errorf("%w: %v in answer to sync", exchange.ErrMalformed, t)
	}
	return exchange.DecodeVector(payload)
}
