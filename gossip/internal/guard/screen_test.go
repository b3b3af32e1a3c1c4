package guard

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
)

// deadMessage is memberlist's message that a peer is dead.
func deadMessage(name string, incarnation uint32) []byte {
	return wordOf(MsgDead, name, "x", incarnation)
}

// wordOf returns memberlist's message of a kind about a peer.
func wordOf(kind byte, name, by string, incarnation uint32) []byte {
	return Pack(kind, "Incarnation", incarnation, "Node", name, "From", by)
}

// promise is the beginning of a list of members.
func promise(members int) []byte {
	return append(bytes.Clone(HeaderOf("")), Pack(MsgPushPull, "Nodes", uint32(members), "UserStateLen", uint32(0), "Join", false)...)
}

// nobody is a set of no members, and all the memory that is wanted.
type nobody struct{}

func (nobody) Known(string) (Known, bool) { return Known{}, false }
func (nobody) Count() int                 { return 0 }
func (nobody) Sums(n int) []uint32        { return make([]uint32, n) }
func (nobody) Take(int64) bool            { return true }
func (nobody) Give(int64)                 {}

// testScreen returns a screen without members, which sends no probes.
func testScreen(most int) *Screen {
	return New(Config{Self: "self", Most: most, Memory: nobody{}, Members: nobody{}, Admit: func([]byte) {}, Refused: func(string, netip.AddrPort, error) {},
		Stranger: func(string, netip.Addr) {}, StreamProbe: func(string, netip.AddrPort) {},
		Probe: func([]byte, netip.AddrPort) {}, Doubt: func(string) {}, Suspected: func(string, uint64) {}})
}

// TestNewcomersFindRoom: a stranger that announces invented peers takes no places from real ones.
func TestNewcomersFindRoom(t *testing.T) {
	s := testScreen(3)
	for i := range 100 {
		for _, kind := range []byte{MsgDead, MsgSuspect} {
			if _, err := s.Packet(wordOf(kind, fmt.Sprintf("nobody%d", i), "x", 1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	host := func(i int) netip.AddrPort { return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 1) }
	for i := range 3 {
		if err := s.enter(claimed{name: fmt.Sprintf("p%d", i), addr: host(i)}, 1); err != nil {
			t.Error(err)
		}
	}
	if err := s.enter(claimed{name: "p4", addr: host(4)}, 1); err == nil {
		t.Error("a fourth member of three")
	}
	s = testScreen(10)
	for i := range 9 {
		at := netip.AddrPortFrom(netip.AddrFrom16([16]byte{0: 0x20, 1: 1, 15: byte(i)}), 1) // one machine's
		if err := s.enter(claimed{name: fmt.Sprintf("s%d", i), addr: at}, 1); (err == nil) != (i < 5) {
			t.Errorf("member %d of one address, of ten in all: %v", i, err)
		}
	}
	if err := s.enter(claimed{name: "p1", addr: host(1)}, 1); err != nil {
		t.Errorf("where one address has half: %v", err)
	}
}

func TestScreenRefuses(t *testing.T) {
	s := testScreen(3)
	part := func(parts ...[]byte) []byte {
		b := []byte{msgCompound, byte(len(parts))}
		for _, p := range parts {
			b = binary.BigEndian.AppendUint16(b, uint16(len(p)))
		}
		return append(b, slices.Concat(parts...)...)
	}
	if err := s.enter(claimed{name: "p1"}, 1); err != nil {
		t.Fatal(err)
	}
	good := deadMessage("p1", 7)
	for name, b := range map[string][]byte{
		"one":               good,
		"several":           part(good, good),
		"of a known member": deadMessage("p1", 1000),
		"of an unknown one": deadMessage("p2", 7),
		"of one that left":  wordOf(MsgDead, "p1", "p1", 7),
	} {
		out, err := s.Packet(bytes.Clone(b))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if want := byte(MsgSuspect); name != "several" && (out[0] != want || !bytes.Equal(out[1:], b[1:])) {
			t.Errorf("%s: the result is % x", name, out)
		}
	}
	for name, b := range map[string][]byte{
		"nothing":               {},
		"compressed":            {9, 0x81},
		"compressed in a part":  part([]byte{9, 0x81}),
		"a compound in another": part(part(good)),
		"encrypted":             {10, 1},
		"a list of members":     promise(1)[len(HeaderOf("")):],
		"half of it":            good[:len(good)-3],
		"a part beyond the end": part(good)[:20],
		"wrong checksum":        append([]byte{msgChecksummed, 0, 0, 0, 0}, good...),
		"a field of another":    bytes.Replace(good, []byte("From"), []byte("Form"), 1),
		"a long name":           {MsgDead, 0x81, 0xa4, 'N', 'o', 'd', 'e', 0xd9, 64},
		"4 GiB of a name":       {MsgDead, 0x81, 0xa4, 'N', 'o', 'd', 'e', 0xdb, 0xff, 0xff, 0xff, 0xff},
		"nobody's incarnation":  deadMessage("self", IncarnationLast+1),
		"no name":               deadMessage("", 1),
	} {
		if _, err := s.Packet(b); err == nil {
			t.Errorf("%s: let through", name)
		}
	}
}

// TestListsLackFields: an element of a list that lacks a field is refused. One without an incarnation
// crashed the peer that read it.
func TestListsLackFields(t *testing.T) {
	for lacks, has := range map[string]string{"an incarnation": "State", "a state": "Incarnation"} {
		near, far := net.Pipe()
		go func() {
			far.Write(append(promise(1), Pack(0, "Name", "p9", "Meta", make([]byte, 100), has, byte(0))[1:]...))
			far.Close()
		}()
		c := testScreen(100).Stream(near, true)
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, errNotPacked) {
			t.Errorf("a member without %s: %v", lacks, err)
		}
		c.Close()
	}
}

// FuzzScreen: any bytes are screened without a panic, and a stream takes memory in proportion to its
// bytes.
func FuzzScreen(f *testing.F) {
	f.Add(deadMessage("p1", 7))
	f.Add(promise(1)[len(HeaderOf("")):])
	f.Fuzz(func(t *testing.T, b []byte) {
		s := testScreen(100)
		s.Packet(bytes.Clone(b))
		near, far := net.Pipe()
		defer far.Close()
		go func() { far.Write(HeaderOf("")); far.Write(b); far.Close() }()
		c := s.Stream(near, true)
		out := make([]byte, 64)
		for range 2*len(b) + 8 {
			if _, err := c.Read(out); err != nil {
				break
			}
		}
		if got, most := cap(c.(*screenedConn).message.b), 2*len(b)+2<<10; got > most {
			t.Errorf("%d bytes were read into a buffer of %d", len(b), got)
		}
		c.Close()
		if s.used != 0 || len(s.perHost) != 0 {
			t.Errorf("%d bytes stay claimed", s.used)
		}
	})
}
