package guard

import (
	"bytes"
	"net/netip"
	"testing"
)

// members are known and alive at their addresses.
type members map[string]netip.AddrPort

func (m members) Known(name string) (Known, bool) {
	at, ok := m[name]
	return Known{Addr: at, Up: ok}, ok
}
func (m members) Count() int          { return len(m) }
func (m members) Sums(n int) []uint32 { return make([]uint32, n) }

// TestDisplaced: a peer that answers at an address ends all others there, in the incarnation that memberlist has heard last; not
// itself, and nobody elsewhere.
func TestDisplaced(t *testing.T) {
	here, there := netip.MustParseAddrPort("10.0.0.1:7946"), netip.MustParseAddrPort("10.0.0.1:7947")
	s := testScreen(10)
	s.cfg.Members = members{"old": here, "new": here, "other": there, "moved": there}
	for name, at := range map[string]netip.AddrPort{"old": here, "new": here, "other": there, "moved": here} {
		if err := s.place(claimed{name: name, addr: at}, 1); err != nil {
			t.Fatal(err)
		}
	}
	b := wordOf(MsgSuspect, "old", "x", 7)
	if err := s.bounded(&Claim{Name: "old", Incarnation: 7, endsAt: len(b)}, b, false); err != nil {
		t.Fatal(err)
	}
	var said [][]byte
	s.cfg.Admit = func(b []byte) { said = append(said, bytes.Clone(b)) }
	s.Displaced("new", here)
	want := Pack(MsgDead, "Incarnation", uint32(7), "Node", "old", "From", "self")
	if len(said) != 1 || !bytes.Equal(said[0], want) {
		t.Errorf("memberlist hears %q, want only %q", said, want)
	}
}
