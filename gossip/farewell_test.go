package gossip

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/summarycache/summarycache/gossip/exchange"
)

// TestFarewells: a farewell counts if the peer has signed it, from any address; of a peer that signs none, from its own alone.
func TestFarewells(t *testing.T) {
	own, other := netip.MustParseAddrPort("10.0.0.1:7946"), netip.MustParseAddrPort("10.0.0.254:40000")
	g := &group{farewell: [farewellKey]byte{1, 2, 3}}
	of := func(name string, incarnation uint64) []byte {
		h := exchange.Head{Origin: exchange.IDOf(name), Version: exchange.Version{Incarnation: incarnation}}
		return exchange.Advert{Kind: exchange.Farewell, Head: h}.AppendTo(nil)
	}
	forged := g.signed(of("signs", 7))
	forged[5]++
	advert := of("signs", 7)
	advert[0] = exchange.Datagrams<<4 | byte(exchange.Announce)
	for name, tt := range map[string]struct {
		b, want []byte // nil = ignored
		from    netip.AddrPort
		left    string
	}{
		"signed":                     {g.signed(of("signs", 7)), of("signs", 7), own, "signs"},
		"signed, from elsewhere":     {g.signed(of("signs", 7)), of("signs", 7), other, "signs"},
		"signed, of a former life":   {g.signed(of("signs", 6)), nil, own, ""},
		"signed for another":         {g.signed(of("signs not", 7)), nil, own, ""},
		"forged":                     {forged, nil, own, ""},
		"not signed, though it does": {of("signs", 7), nil, own, ""},
		"of one that signs none":     {of("signs not", 7), of("signs not", 7), own, "signs not"},
		"of that, from elsewhere":    {of("signs not", 7), nil, other, ""},
		"an advert":                  {advert, advert, other, ""},
		"an advert, signed":          {g.signed(advert), nil, own, ""},
		"nothing signed":             {g.signed(nil), nil, own, ""},
		"half a key":                 {[]byte{signedByte, 1, 2}, []byte{signedByte, 1, 2}, own, ""},
	} {
		table := memberTable{}
		for who, hash := range map[string]string{"signs": farewellOf(g.farewell[:]), "signs not": ""} {
			m := &member{name: who, id: exchange.IDOf(who)}
			m.info.Store(&memberInfo{memberEvent: memberEvent{addr: own}, meta: exchange.Meta{Incarnation: 7, Farewell: hash}})
			table[who] = m
		}
		if got := noteFarewell(table, tt.b, tt.from); !bytes.Equal(got, tt.want) || (got == nil) != (tt.want == nil) {
			t.Errorf("%s: noteFarewell = %x, want %x", name, got, tt.want)
		}
		for who, m := range table {
			if left := m.left.Load() != 0; left != (who == tt.left) {
				t.Errorf("%s: %s has left: %v", name, who, left)
			}
		}
	}
}
