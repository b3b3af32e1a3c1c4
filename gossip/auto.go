package gossip

import (
	"slices"
	"time"

	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/internal/wire"
)

// Of the members that may keep digests, so many keep them although they take too much memory: in each zone, or of
// those without one.
const (
	keepersOfZone    = 4
	keepersElsewhere = 8
)

const (
	decideEvery   = 5 * time.Second
	stepDownAfter = time.Minute // for which a better keeper must have lived: it has all digests by then
	defaultIndex  = 256 << 20   // bytes
)

// auto is the state of a node whose Digests are [Auto].
type auto struct {
	next    time.Time // when to decide again
	since   time.Time // when it was last needed as a keeper, or the digests took little memory
	perPeer int64     // bytes that a digest and its part of the index take; 0 = unknown
}

// decide makes this peer light or full if it may be either, and returns when to call it again; the zero Time if it may not.
// It runs in the node's loop only.
func (h *host) decide(now time.Time) time.Time {
	a := &h.auto
	if h.cfg.Digests != Auto || now.Before(a.next) {
		return a.next
	}
	a.next = now.Add(decideEvery)
	live := h.liveMembers()
	switch {
	case !h.isLarge(live) || h.isKeeper(live):
		a.since = now
		h.setLight(false)
	case !h.asking.complete.Load() || now.Sub(a.since) >= stepDownAfter:
		h.setLight(true)
	}
	return a.next
}

// isLarge reports whether the digests of all take more memory than they should. A peer that is light, or is new where
// others are, says so down to half of that.
func (h *host) isLarge(live []*member) bool {
	a, most := &h.auto, h.cfg.IndexBytes
	replicas := int64(0)
	for _, m := range live {
		if m.inUse.Load() != nil {
			replicas++
		}
	}
	if h.asking.complete.Load() && replicas > 0 {
		a.perPeer = h.digestBytes() / replicas
	}
	perPeer := a.perPeer
	if perPeer == 0 && h.cfg.Holdings != nil {
		perPeer = costOf(h.cfg.Holdings.Filter().Current()) // of this peer's own, until it knows others
	}
	if h.light.Load() || !h.asking.complete.Load() && slices.ContainsFunc(live, func(m *member) bool { return m.info.Load().meta.Spare }) {
		most /= 2
	}
	return perPeer*int64(len(live)) > most
}

// isKeeper reports whether this peer is one of those of its zone that keep digests in any case: the first by the hash of
// their names of those that are full or would be.
func (h *host) isKeeper(live []*member) bool {
	own, left := wire.Mix(uint64(exchange.IDOf(h.cfg.Name))), keepersOfZone
	if h.cfg.Zone == "" {
		left = keepersElsewhere
	}
	for _, m := range live {
		meta := &m.info.Load().meta
		if meta.Zone == h.cfg.Zone && (!meta.Light || meta.Spare) && wire.Mix(uint64(m.id)) > own {
			left--
		}
	}
	return left > 0
}

// setLight makes this peer light or full, and announces it.
func (h *host) setLight(light bool) {
	if h.light.Swap(light) == light {
		return
	}
	h.log.Info("changed whose digests this peer keeps", "none", light)
	h.update(func(e *exchange.Engine) { e.SetLight(time.Now(), light) })
	h.asking.complete.Store(false)
	h.sumSelf()
	h.asking.members.Store(new(directory))
	h.wg.Go(h.updateMetadata)
}
