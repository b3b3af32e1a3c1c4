package exchange

import (
	"errors"
	"fmt"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip/internal/backoff"
)

// errStale: an answer is valid, but not newer than the replica.
var errStale = errors.New("not newer than the version held")

// errRestarted: an answer is right, but of another life than membership knows. Nobody is to blame for it.
var errRestarted = errors.New("of a life of the origin that membership does not know")

// bodyArrived checks whether a decoded and verified body may become the replica, and installs it.
func (e *Engine) bodyArrived(now time.Time, f *flight, r Result) {
	p := f.origin
	if r.Kind == FrameSnapshot {
		e.stats.SnapshotsReceived++
		if p.snapshots.spend(now) {
			e.stats.Floods++
			e.emit(Event{Kind: Flooding, Peer: p.name, Head: r.Head})
		}
	} else {
		e.stats.DeltasReceived++
	}
	if r.Err = e.acceptable(p, f, r); r.Err != nil {
		e.fetchFailed(now, f, r)
		return
	}
	e.install(now, f, r)
}

// acceptable checks the rules of PROTOCOL.md 6.3 that decoding has not checked.
func (e *Engine) acceptable(p *peer, f *flight, r Result) error {
	if r.Head.Version.Incarnation != p.incarnation {
		return errRestarted
	}
	if r.Kind == FrameDelta && f.get.Have != p.held.Version {
		return fmt.Errorf("%w: the base has been replaced", digest.ErrBase)
	}
	if p.state == wrong && r.Head.Version.Compare(p.floor) < 0 && p.retry.Row < denials {
		return fmt.Errorf("%w: older than the version that the origin reported", errStale)
	}
	c := r.Head.Version.Compare(p.held.Version)
	if p.state == nothing || c > 0 || p.state == wrong && f.source == p {
		return nil
	}
	if c == 0 && f.source == p && r.Head.State != p.held.State {
		return nil // the origin corrects the replica
	}
	return errStale
}

// install makes a body the replica.
func (e *Engine) install(now time.Time, f *flight, r Result) {
	p := f.origin
	direct := f.source == p && !f.step // it came from the origin itself, over a stream
	repaired := direct && (p.state == wrong || r.Head.Version == p.held.Version)
	if repaired && p.state != wrong && p.diverged != r.Head.Version {
		p.diverged = r.Head.Version
		e.stats.Divergences++
		e.emit(Event{Kind: Diverged, Peer: p.name, Head: p.held})
	}
	if base := p.held.Version; p.state != nothing && r.Head.Version.Epoch == base.Epoch && r.Head.Version.Sequence > base.Sequence+1 {
		e.stats.Gaps++
	}
	if r.Delta != nil {
		p.history.AdvanceDelta(r.Filter, r.Delta)
	} else {
		p.history = digest.NewHistory(e.cfg.ReplicaLog)
		p.history.Advance(r.Filter)
	}
	p.held, p.filter = r.Head, r.Filter
	if direct || p.state != wrong { // only the origin can correct a wrong replica
		e.become(p, trusted)
	}
	p.retry = backoff.Backoff{Until: now}
	p.installedAt = now
	p.refusals, p.refused, p.badDeltas, p.whole = 0, 0, 0, false
	if f.source == p {
		e.outputs.Fresh = append(e.outputs.Fresh, p.name)
	}
	if direct {
		p.confirmed = r.Head.Version
		e.note(p, receipt, p.held.mark())
		p.check = false
		if p.announced.Version.Compare(p.held.Version) > 0 && r.Head.Version.Compare(f.get.Have) <= 0 {
			p.announced = Head{}
		}
	}
	ev := Event{
		Kind: Applied, Peer: p.name, Source: f.source.name, Head: r.Head,
		Snapshot: r.Kind == FrameSnapshot, Bytes: r.Bytes,
	}
	if heard := p.announced.Version; !heard.IsZero() && heard.Compare(p.held.Version) <= 0 && !p.announcedAt.IsZero() {
		ev.Lag = now.Sub(p.announcedAt)
		e.stats.Lags++
		e.stats.LagSum += ev.Lag
		e.stats.LagMax = max(e.stats.LagMax, ev.Lag)
		if !p.byAdvert {
			e.stats.Repairs++
		}
		p.announcedAt = time.Time{}
	}
	if p.announced.Version.Compare(p.held.Version) <= 0 {
		p.holders = nil
	}
	e.settle(p, r.Delta)
	e.emit(ev)
	if repaired {
		e.emit(Event{Kind: Repaired, Peer: p.name, Head: r.Head})
	}
}
