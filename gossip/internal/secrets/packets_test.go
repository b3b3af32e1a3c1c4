package secrets

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

var testSecret = []byte("a secret of the test cluster")

// packetVectors are the keys derived from secrets, and packets sealed under them.
type packetVectors []struct {
	Secret string // its bytes as text
	ID     string // name, 4 bytes as they travel, hex
	Public string // Ed25519, hex
	Seed   uint64 // of digests
	Plain  string // a packet, hex
	Sealed string // what travels, hex
}

func readPackets(t testing.TB) packetVectors {
	t.Helper()
	b, err := os.ReadFile("testdata/packets.json")
	if err != nil {
		t.Fatal(err)
	}
	var v packetVectors
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestPacketVectors(t *testing.T) {
	for _, v := range readPackets(t) {
		r, err := New([]byte(v.Secret), [][]byte{[]byte("one that is accepted too")})
		if err != nil {
			t.Fatal(err)
		}
		s := r.Secrets[0]
		if got := Text(s.ID); got != v.ID {
			t.Errorf("%q is named %s, want %s", v.Secret, got, v.ID)
		}
		if got := fmt.Sprintf("%x", s.public); got != v.Public || s.Seed != v.Seed {
			t.Errorf("%q has public key %s and seed %d, want %s and %d", v.Secret, got, s.Seed, v.Public, v.Seed)
		}
		plain, _ := hex.DecodeString(v.Plain)
		sealed, _ := hex.DecodeString(v.Sealed)
		if got := r.Seal(plain); !bytes.Equal(got, sealed) || len(got) != len(plain)+SealBytes {
			t.Errorf("seal(%x) = %x, want %x", plain, got, sealed)
		}
		if got := r.Open(sealed); !bytes.Equal(got, plain) {
			t.Errorf("open(%x) = %x, want %x", sealed, got, plain)
		}
		for bit := range 8 * len(sealed) {
			bad := bytes.Clone(sealed)
			bad[bit/8] ^= 1 << (bit % 8)
			if got := r.Open(bad); got != nil {
				t.Errorf("with bit %d flipped it still opens, as %x", bit, got)
			}
		}
	}
}

func BenchmarkSeal(b *testing.B) {
	r, err := New(testSecret, nil)
	if err != nil {
		b.Fatal(err)
	}
	packet := bytes.Repeat([]byte{1}, 60)
	for b.Loop() {
		if got := r.Open(r.Seal(packet)); got == nil {
			b.Fatal("does not open")
		}
	}
}

// FuzzPacket: no bytes but those sealed under an accepted secret reach memberlist.
func FuzzPacket(f *testing.F) {
	for _, v := range readPackets(f) {
		sealed, _ := hex.DecodeString(v.Sealed)
		plain, _ := hex.DecodeString(v.Plain)
		f.Add(sealed)
		f.Add(sealed[:len(sealed)-1])
		f.Add(plain)
	}
	r, err := New(testSecret, nil)
	if err != nil {
		f.Fatal(err)
	}
	none := &Ring{}
	known := make(map[string]bool)
	for _, v := range readPackets(f) {
		known[v.Sealed] = v.Secret == string(testSecret)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if got := r.Open(b); got != nil && !known[hex.EncodeToString(b)] {
			t.Errorf("open(%x) = %x", b, got)
		}
		if got := none.Open(b); !bytes.Equal(got, b) {
			t.Errorf("without a secret open(%x) = %x", b, got)
		}
	})
}
