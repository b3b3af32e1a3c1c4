package exchange

// ProtocolVersion is the greatest version of PROTOCOL.md that this package speaks,
// LeastVersion the least.
const (
	ProtocolVersion = 2
	LeastVersion    = 1
)

// MaxAdvert is the length in bytes of the longest advert.
const MaxAdvert = 64

// AdvertKind distinguishes the datagrams: adverts and, beside them, [Carrying].
type AdvertKind uint8

const (
	// Announce is the origin saying what it has published.
	Announce AdvertKind = 1
	// Echo tells a peer of a greater incarnation of itself than it uses.
	Echo AdvertKind = 2
	// Farewell is the origin saying that it is about to leave.
	Farewell AdvertKind = 4
)

// Advert is a datagram without anything behind it.
type Advert struct {
	Kind AdvertKind
	Head Head
}

// AppendTo appends the datagram to dst.
func (a Advert) AppendTo(dst []byte) []byte {
	dst = append(dst, LeastVersion<<4|byte(a.Kind))
	return a.Head.append(dst)
}

// DecodeAdvert reads a datagram. b is not retained.
func DecodeAdvert(b []byte) (Advert, error) {
	r := reader{message: "advert", b: b}
	if len(b) > MaxAdvert {
		r.off = MaxAdvert
		r.fail("length")
		return Advert{}, r.err
	}
	a := Advert{Kind: r.kind()}
	if a.Kind != Announce && a.Kind != Echo && a.Kind != Farewell {
		r.off = 0
		r.fail("kind")
	}
	a.Head = r.head()
	if err := r.end(); err != nil {
		return Advert{}, err
	}
	return a, nil
}
