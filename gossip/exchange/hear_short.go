package exchange

import "time"

// tagged returns the member that a tag stands for; nil if none does, or several do. One
// that is taken for dead is told of as alive: its life is not known, so that membership
// has to find out.
func (e *Engine) tagged(t Tag) *peer {
	p := e.tags[t]
	if p == nil {
		return nil
	}
	if !p.live {
		if p.incarnation != 0 {
			e.outputs.NotDead = append(e.outputs.NotDead, p.name)
		}
		return nil
	}
	return p
}

// tagPeers makes the table of tags anew.
func (e *Engine) tagPeers() {
	clear(e.tags)
	e.tags[e.id.tag()] = nil
	for _, p := range e.order {
		e.tag(p)
	}
}

func (e *Engine) tag(p *peer) {
	t := p.id.tag()
	if _, taken := e.tags[t]; taken {
		p = nil
	}
	e.tags[t] = p
}

// handleStep takes in a change to what is held.
func (e *Engine) handleStep(now time.Time, s Step) {
	p := e.tagged(s.Origin)
	if p == nil {
		return
	}
	// The version that it starts from is the one that ends so and is nearest.
	held := p.held.Version
	from := held.Sequence + uint64(int64(int8(s.From-uint8(held.Sequence))))
	h := Head{Origin: p.id, Version: Version{p.incarnation, held.Epoch, from + s.Step}}
	if p.state == Nothing || held.Incarnation != p.incarnation {
		e.ask(now, p)
		return
	}
	if h.Version.Compare(held) <= 0 {
		if h.Version == held && p.held.mark() != s.Mark || now.Sub(p.installedAt) >= lateAdvert {
			e.contest(now, p)
		}
		return
	}
	e.hear(now, p, h, p)
	e.stats.CarriersIn++
	e.carry(now, p, s.carrier(h, len(p.key) > 0))
}

// carrier is what the step brings, given the origin, the version that it leads to and
// whether the origin signs.
func (s Step) carrier(h Head, signed bool) *Carrier {
	c := &Carrier{Head: h, Change: s.Behind, step: s.Step, packed: s.Packed, mark: s.Mark, keys: uint64(s.Keys)}
	if signed {
		n := min(len(s.Behind), signatureBytes)
		c.signature, c.Change = s.Behind[:n], s.Behind[n:]
	}
	return c
}

// ask has what p publishes fetched from it.
func (e *Engine) ask(now time.Time, p *peer) {
	e.reachable(now, p)
	p.check = true
	e.enqueue(p)
}

func (e *Engine) handleNote(now time.Time, n Note) {
	p := e.tagged(n.From)
	if p == nil {
		return
	}
	switch n.Kind {
	case Reminder:
		switch {
		case p.holds() && p.held.mark() == n.Mark:
			e.outputs.Fresh = append(e.outputs.Fresh, p.name)
			e.note(p, Note{Kind: Receipt, From: e.id.tag(), Mark: n.Mark})
		case p.state == Nothing || p.held.Version.Incarnation != p.incarnation:
			e.ask(now, p)
		default:
			e.reachable(now, p)
			e.contest(now, p)
		}
	case Receipt:
		if e.published() && n.Mark == e.self.mark() {
			p.reacted = e.self.Version
		}
	}
}

// note sends a short datagram.
func (e *Engine) note(p *peer, n Note) {
	e.outputs.Datagrams = append(e.outputs.Datagrams, Datagram{To: p.name, Data: n.AppendTo(nil)})
}
