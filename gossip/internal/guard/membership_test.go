package guard

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"testing"
)

// TestMembership: messages that memberlist v0.7.0 wrote, for peers of protocol version 1, are read as they were meant. A
// member in a list begins with ff here.
func TestMembership(t *testing.T) {
	type fields struct {
		Name, From, Addr            string
		Number, Incarnation         uint64
		Members                     int
		Payload, Metadata, Versions string // hex
	}
	var v struct {
		Messages []struct {
			Name, Hex string
			Fields    fields
		}
		Packets []struct{ Name, Hex string }
	}
	b, err := os.ReadFile("testdata/membership.json")
	if err == nil {
		err = json.Unmarshal(b, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	seen := map[byte]bool{}
	for _, m := range v.Messages {
		b := unhex(t, m.Hex)
		u := unpacker{b: b, at: 1}
		c, err := read(&u, b[0])
		got := fields{Name: c.Name, From: c.from, Number: c.number, Incarnation: c.Incarnation, Members: c.members,
			Payload: fmt.Sprintf("%x", c.answer), Metadata: fmt.Sprintf("%x", c.Meta), Versions: fmt.Sprintf("%x", c.Versions)}
		if c.Addr != (netip.AddrPort{}) && m.Fields.Addr != "" {
			got.Addr = c.Addr.String()
		}
		if err != nil || got != m.Fields || u.at != len(b) {
			t.Errorf("%s: %+v, %d of %d bytes, %v, want %+v", m.Name, got, u.at, len(b), err, m.Fields)
		}
		seen[b[0]] = true
	}
	for kind := range screened {
		if !seen[kind] {
			t.Errorf("testdata/membership.json has no message of kind %d", kind)
		}
	}
	for _, p := range v.Packets {
		if _, err := testScreen(10).Packet(unhex(t, p.Hex)); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
	alive := Pack(msgAlive, "Incarnation", uint32(1), "Node", "p9", "Addr", []byte{10, 0, 0, 9}, "Port", uint16(1), "Meta", make([]byte, 512), "Vsn", []byte{1, 5, 2, 0, 0, 0})
	if _, err := testScreen(10).Packet(alive); err != nil {
		t.Errorf("metadata of 512 bytes: %v", err)
	}
	alive = Pack(msgAlive, "Incarnation", uint32(1), "Node", "p9", "Addr", []byte{10, 0, 0, 9}, "Port", uint16(1), "Meta", make([]byte, 513), "Vsn", []byte{1, 5, 2, 0, 0, 0})
	if _, err := testScreen(10).Packet(alive); err == nil {
		t.Error("metadata of 513 bytes are accepted")
	}
}
