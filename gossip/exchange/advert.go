package exchange

import "slices"

// ProtocolVersion is the version of PROTOCOL.md that this package speaks.
const ProtocolVersion = 1

// MaxAdvert is the length in bytes of the longest advert.
const MaxAdvert = 64

// AdvertKind distinguishes the datagrams.
type AdvertKind uint8

const (
	// Announce: the origin has published a version.
	Announce AdvertKind = 1
	// Echo: others know a greater incarnation of the receiver than it uses.
	Echo AdvertKind = 2
	// Farewell: the origin is about to leave.
	Farewell AdvertKind = 3
	// Stepping: a [Step], an advert with the change, as a bare delta.
	Stepping AdvertKind = 4
	// Packed: a [Step] with a packed delta.
	Packed AdvertKind = 5
	// Reminder: a datagram by which the origin asks whether its version has arrived.
	Reminder AdvertKind = 6
	// Receipt: a datagram by which a peer confirms that to the origin.
	Receipt AdvertKind = 7
)

// first returns the first byte of a datagram of this kind.
func (k AdvertKind) first() byte { return ProtocolVersion<<4 | byte(k) }

// kind reads the first byte of a datagram, which must be of one of the wanted kinds.
func (r *reader) kind(wanted ...AdvertKind) AdvertKind {
	b := r.Byte("kind")
	k := AdvertKind(b & 0xf)
	switch {
	case r.Err != nil:
	case b>>4 != ProtocolVersion:
		r.FailAt(0, "version", ErrVersion)
	case !slices.Contains(wanted, k):
		r.FailAt(0, "kind", ErrMalformed)
	}
	return k
}

// Advert is a datagram that consists of a kind and a head.
type Advert struct {
	Kind AdvertKind
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
	a := Advert{r.kind(Announce, Echo, Farewell), r.head()}
	if err := r.End(); err != nil {
		return Advert{}, err
	}
	return a, nil
}
