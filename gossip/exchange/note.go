package exchange

import (
	"encoding/binary"
	"time"
)

// A tag stands for a peer in short datagrams: the lower three bytes of its ID, or, above tagMask, the whole
// ID, by which a peer is told from others with the same three bytes.
type tag uint64

const (
	tagBytes = 3
	tagMask  = 1<<(8*tagBytes) - 1
)

func (id ID) tag() tag { return tag(id & tagMask) }

// AppendTag appends the three bytes that stand for a peer in short datagrams.
func (id ID) AppendTag(dst []byte) []byte { return append(dst, byte(id), byte(id>>8), byte(id>>16)) }

// ownTag is the tag in this peer's datagrams.
func (e *Engine) ownTag() tag {
	if e.tagShared {
		return tag(e.id)
	}
	return e.id.tag()
}

// byID is added to the kind of a short datagram that has an ID.
const byID advertKind = 8

// appendTag appends the first byte of a short datagram, and the tag.
func (k advertKind) appendTag(dst []byte, t tag) []byte {
	if t > tagMask {
		return binary.LittleEndian.AppendUint64(append(dst, (k|byID).first()), uint64(t))
	}
	return ID(t).AppendTag(append(dst, k.first()))
}

// tagOf reads the tag in a datagram of kind k.
func (r *reader) tagOf(k advertKind) tag {
	if k&byID == 0 {
		return tag(r.Uint24("origin"))
	}
	t := tag(r.Uint64("origin"))
	if t <= tagMask {
		r.Fail("origin")
	}
	return t
}

// A note is a datagram of eight bytes, or of thirteen with an ID.
type note struct {
	Kind advertKind
	From tag    // the sender
	Mark uint32 // of the origin's head
}

// AppendTo appends the datagram to dst.
func (n note) AppendTo(dst []byte) []byte {
	dst = n.Kind.appendTag(dst, n.From)
	return binary.LittleEndian.AppendUint32(dst, n.Mark)
}

// decodeNote reads a datagram. b is not retained.
func decodeNote(b []byte) (note, error) {
	r := newReader("note", b)
	k := r.kind(reminder, receipt, reminder|byID, receipt|byID)
	n := note{k &^ byID, r.tagOf(k), r.Uint32("mark")}
	if err := r.End(); err != nil {
		return note{}, err
	}
	return n, nil
}

// tagged returns the live member for which a tag stands; nil if there is none, or if there are
// several. If membership counts the member as dead, the engine reports that it may be alive: short
// datagrams have no incarnation, so membership has to find out.
func (e *Engine) tagged(t tag) *peer {
	p := e.tags[t]
	if t > tagMask {
		p = e.peers[ID(t)]
	}
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

// tagPeers rebuilds the table of tags.
func (e *Engine) tagPeers() {
	clear(e.tags)
	e.tags[e.id.tag()], e.tagShared = nil, false
	for _, p := range e.order {
		e.tag(p)
	}
}

func (e *Engine) tag(p *peer) {
	t := p.id.tag()
	e.tagShared = e.tagShared || t == e.id.tag()
	if _, taken := e.tags[t]; taken {
		p = nil
	}
	e.tags[t] = p
}

// ask fetches p's digest from p itself.
func (e *Engine) ask(now time.Time, p *peer) {
	e.reachable(now, p)
	p.check = true
	e.enqueue(p)
}

func (e *Engine) handleNote(now time.Time, n note) {
	p := e.tagged(n.From)
	if p == nil {
		return
	}
	switch n.Kind {
	case reminder:
		switch {
		case p.holds() && p.held.mark() == n.Mark:
			e.outputs.Fresh = append(e.outputs.Fresh, p.name)
			e.note(p, receipt, n.Mark)
		case p.state == nothing || p.held.Version.Incarnation != p.incarnation:
			e.ask(now, p)
		default:
			e.reachable(now, p)
			e.contest(now, p)
		}
	case receipt:
		if e.published() && n.Mark == e.self.mark() {
			p.reacted = e.self.Version
		}
	}
}

// note sends a note.
func (e *Engine) note(p *peer, kind advertKind, mark uint32) {
	e.outputs.Datagrams = append(e.outputs.Datagrams, Datagram{To: p.name, Data: note{kind, e.ownTag(), mark}.AppendTo(nil)})
}
