package exchange

import "slices"

// ProtocolVersion is the version of PROTOCOL.md that this package speaks.
const ProtocolVersion = 1

// Datagrams is in the upper four bits of the first byte of every datagram of this package. It is no version: 2 is in
// those of probes, and a later version would take another number that is free (PROTOCOL.md 9).
const Datagrams = 1

// MaxAdvert is the length in bytes of the longest advert.
const MaxAdvert = 64

// advertKind distinguishes the datagrams.
type advertKind uint8

const (
	// Announce: the origin has published a version.
	Announce advertKind = 1
	// echo: others know a greater incarnation of the receiver than it uses.
	echo advertKind = 2
	// Farewell: the origin is about to leave.
	Farewell advertKind = 3
	// stepping: a [Step], an advert with the change, as a bare delta.
	stepping advertKind = 4
	// reminder: a datagram by which the origin asks whether its version has arrived.
	reminder advertKind = 6
	// receipt: a datagram by which a peer confirms that to the origin.
	receipt advertKind = 7
)

// first returns the first byte of a datagram of this kind.
func (k advertKind) first() byte { return Datagrams<<4 | byte(k) }

// kind reads the first byte of a datagram, which must be of one of the wanted kinds.
func (r *reader) kind(wanted ...advertKind) advertKind {
	b := r.Byte("kind")
	k := advertKind(b & 0xf)
	if b>>4 != Datagrams || !slices.Contains(wanted, k) {
		r.FailAt(0, "kind", ErrMalformed)
	}
	return k
}

// Advert is a datagram that consists of a kind and a head.
type Advert struct {
	Kind advertKind
	Head Head
}

// AppendTo appends the datagram to dst.
func (a Advert) AppendTo(dst []byte) []byte {
	return a.Head.append(append(dst, a.Kind.first()))
}

// DecodeAdvert reads a datagram. b is not retained.
func DecodeAdvert(b []byte) (Advert, error) {
	r := newReader("advert", b)
	if len(b) > MaxAdvert {
		r.FailAt(MaxAdvert, "length", ErrMalformed)
		return Advert{}, r.Err
	}
	a := Advert{r.kind(Announce, echo, Farewell), r.head()}
	if err := r.End(); err != nil {
		return Advert{}, err
	}
	return a, nil
}
