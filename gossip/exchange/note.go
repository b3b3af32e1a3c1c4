package exchange

import (
	"encoding/binary"
	"time"
)

// A tag stands for a peer in short datagrams: the lower three bytes of its ID. If two members have
// the same tag, it stands for neither.
type tag uint32

const (
	tagBytes = 3
	tagMask  = 1<<(8*tagBytes) - 1
)

func (id ID) tag() tag { return tag(id & tagMask) }

// AppendTag appends the three bytes that stand for a peer in short datagrams.
func (id ID) AppendTag(dst []byte) []byte { return appendTag(dst, id.tag()) }

func appendTag(dst []byte, t tag) []byte { return append(dst, byte(t), byte(t>>8), byte(t>>16)) }

func (r *reader) tag() tag { return tag(r.Uint24("origin")) }

// A note is a datagram of eight bytes.
type note struct {
	Kind advertKind
	From tag    // the sender
	Mark uint32 // of the origin's head
}

// AppendTo appends the datagram to dst.
func (n note) AppendTo(dst []byte) []byte {
	dst = appendTag(append(dst, n.Kind.first()), n.From)
	return binary.LittleEndian.AppendUint32(dst, n.Mark)
}

// decodeNote reads a datagram. b is not retained.
func decodeNote(b []byte) (note, error) {
	r := newReader("note", b)
	n := note{r.kind(reminder, receipt), r.tag(), r.Uint32("mark")}
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
	e.outputs.Datagrams = append(e.outputs.Datagrams, Datagram{To: p.name, Data: note{kind, e.id.tag(), mark}.AppendTo(nil)})
}
