package guard

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"hash/crc32"
	"os"
	"testing"
)

// shortVectors are packets in the short form to the peer called Self, and what they stand for.
type shortVectors struct {
	Self  string
	Valid []struct {
		Name, Packet, Message string // hex
		Token                 bool   // of which the message shows nothing
	}
	Invalid []struct{ Name, Packet string }
}

func readShort(t testing.TB) (v shortVectors) {
	t.Helper()
	b, err := os.ReadFile("testdata/probes.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &v); err != nil || len(v.Valid) < 6 || len(v.Invalid) < 9 {
		t.Fatalf("testdata/probes.json: %v", err)
	}
	return v
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestShortVectors(t *testing.T) {
	all := readShort(t)
	for _, v := range all.Valid {
		packet, message := unhex(t, v.Packet), unhex(t, v.Message)
		if got, err := lengthen(packet, all.Self); err != nil || !bytes.Equal(got, message) {
			t.Errorf("%s: lengthen(%x) = %x, %v, want %x", v.Name, packet, got, err, message)
		}
		if v.Token {
			continue
		}
		checked := append(binary.BigEndian.AppendUint32([]byte{msgChecksummed}, crc32.ChecksumIEEE(message)), message...)
		for _, long := range [][]byte{message, checked} {
			if got := Shorten(long); !bytes.Equal(got, packet) {
				t.Errorf("%s: shorten(%x) = %x, want %x", v.Name, long, got, packet)
			}
		}
	}
	for _, v := range all.Invalid {
		if got, err := lengthen(unhex(t, v.Packet), all.Self); err == nil {
			t.Errorf("%s: lengthen(%s) = %x", v.Name, v.Packet, got)
		}
	}
}

// What has no short form is sent as it is.
func TestWithoutAShortForm(t *testing.T) {
	ping := Pack(MsgPing, "SeqNo", uint32(1), "Node", "p1")
	for name, b := range map[string][]byte{
		"nothing": {}, "a checksum alone": {msgChecksummed, 0, 0, 0, 0}, "another message": deadMessage("p1", 1),
		"several messages": append([]byte{msgCompound, 1, 0, byte(len(ping))}, ping...), "a probe and more": append(ping, 0),
		"a probe of no name": Pack(MsgPing, "SeqNo", uint32(1)), "half a probe": ping[:len(ping)-1],
	} {
		if got := Shorten(b); !bytes.Equal(got, b) {
			t.Errorf("%s: shorten(%x) = %x", name, b, got)
		}
	}
}

// FuzzShort: any packet is refused, or stands for a message that memberlist could have sent and that has
// no other short form.
func FuzzShort(f *testing.F) {
	all := readShort(f)
	for _, v := range all.Valid {
		f.Add(unhex(f, v.Packet))
	}
	for _, v := range all.Invalid {
		f.Add(unhex(f, v.Packet))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 || b[0]>>4 != Short {
			return
		}
		long, err := lengthen(b, all.Self)
		if err != nil {
			return
		}
		u := unpacker{b: long, at: 1}
		if _, err := read(&u, long[0]); err != nil || u.at != len(long) {
			t.Errorf("lengthen(%x) = %x, which is not memberlist's: %v", b, long, err)
		}
		if got := Shorten(long); b[0]&WithToken == 0 && got[0]>>4 == Short && !bytes.Equal(got, b) {
			t.Errorf("shorten(lengthen(%x)) = %x", b, got)
		}
	})
}
