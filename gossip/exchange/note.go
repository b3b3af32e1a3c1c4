package exchange

import (
	"encoding/binary"
	"time"
)

// A Tag stands for a peer in short datagrams: the lower three bytes of its ID. If two members have
// the same tag, it stands for neither.
type Tag uint32

const (
	tagBytes = 3
	tagMask  = 1<<(8*tagBytes) - 1
)

func (id ID) tag() Tag { return Tag(id & tagMask) }

func appendTag(dst []byte, t Tag) []byte { return append(dst, byte(t), byte(t>>8), byte(t>>16)) }

func (r *reader) tag() Tag { return Tag(r.Uint24("origin")) }

// A Note is a datagram of eight bytes.
type Note struct {
	Kind AdvertKind
	From Tag    // the sender
	Mark uint32 // of the origin's head
}

// AppendTo appends the datagram to dst.
func (n Note) AppendTo(dst []byte) []byte {
	dst = appendTag(append(dst, n.Kind.first()), n.From)
	return binary.LittleEndian.AppendUint32(dst, n.Mark)
}

// DecodeNote reads a datagram. b is not retained.
func DecodeNote(b []byte) (Note, error) {
	r := newReader("note", b)
	n := Note{r.kind(Reminder, Receipt), r.tag(), r.Uint32("mark")}
	if err := r.End(); err != nil {
		return Note{}, err
	}
	return n, nil
}

// tagged returns the live member for which a tag stands; nil if there is none, or if there are
// several. If membership counts the member as dead, the engine reports that it may be alive: short
// datagrams have no incarnation, so membership has to find out.
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
			e.note(p, Receipt, n.Mark)
		case p.state == nothing || p.held.Version.Incarnation != p.incarnation:
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

// note sends a note.
func (e *Engine) note(p *peer, kind AdvertKind, mark uint32) {
	e.outputs.Datagrams = append(e.outputs.Datagrams, Datagram{To: p.name, Data: Note{kind, e.id.tag(), mark}.AppendTo(nil)})
}
