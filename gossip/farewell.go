package gossip

import (
	"crypto/sha256"
	"net/netip"
	"slices"

	"github.com/summarycache/summarycache/gossip/exchange"
)

// A peer that leaves shows a key whose hash its metadata have had since it began, so that nobody else can bid farewell
// in its name, from whatever address the packet comes: behind address translation it is another one than the peer
// advertises.
const (
	signedByte  = exchange.Datagrams<<4 | 5 // first byte of a signed farewell: the key and the farewell follow
	farewellKey = 16
)

func farewellOf(key []byte) string {
	sum := sha256.Sum256(key)
	return string(sum[:exchange.FarewellBytes])
}

// signed returns a farewell of this peer for those whose metadata have such a hash themselves: earlier programs know no
// signed ones.
func (g *group) signed(farewell []byte) []byte {
	return slices.Concat([]byte{signedByte}, g.farewell[:], farewell)
}

// noteFarewell records that a peer is about to leave if b is a farewell that the peer has signed or, if it signs none,
// one from its address. It returns the datagram for the exchange, without a signature, and nil for any other farewell,
// which must be ignored.
func noteFarewell(table memberTable, b []byte, from netip.AddrPort) []byte {
	key := ""
	if len(b) > farewellKey && b[0] == signedByte {
		key, b = farewellOf(b[1:1+farewellKey]), b[1+farewellKey:]
	}
	if key == "" && (len(b) == 0 || b[0] != exchange.Datagrams<<4|byte(exchange.Farewell)) {
		return b // something else
	}
	a, err := exchange.DecodeAdvert(b)
	if err != nil || a.Kind != exchange.Farewell {
		return nil
	}
	for _, m := range table {
		info := m.info.Load()
		if m.id == a.Head.Origin && info.meta.Farewell == key && (key != "" || info.addr == from) &&
			info.meta.Incarnation == a.Head.Version.Incarnation {
			m.left.Store(info.meta.Incarnation)
			return b
		}
	}
	return nil
}
