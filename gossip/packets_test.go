package gossip

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/summarycache/summarycache/gossip/exchange"
)

// packetVectors are what follows from secrets, and packets sealed under them.
type packetVectors []struct {
	Secret string // its bytes as text
	ID     string // name, 4 bytes as they travel, hex
	Public string // Ed25519, hex
	Seed   uint64 // of digests
	Plain  string // memberlist's packet, hex
	Sealed string // what travels to a peer of version 1, hex
	Short  string // and to one of version 2
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
		r, err := newRing([]byte(v.Secret), [][]byte{[]byte("one that is accepted too")})
		if err != nil {
			t.Fatal(err)
		}
		s := r.secrets[0]
		if got := string(s.header[2:]); got != "sc1-"+v.ID {
			t.Errorf("%q is named %s, want %s", v.Secret, got, v.ID)
		}
		if got := fmt.Sprintf("%x", s.public); got != v.Public || s.seed != v.Seed {
			t.Errorf("%q has public key %s and seed %d, want %s and %d", v.Secret, got, s.seed, v.Public, v.Seed)
		}
		plain, _ := hex.DecodeString(v.Plain)
		sealed, _ := hex.DecodeString(v.Sealed)
		short, _ := hex.DecodeString(v.Short)
		if got := r.seal(plain, true); !bytes.Equal(got, short) {
			t.Errorf("sealed for version 2: %x, want %x", got, short)
		}
		datagram := []byte{exchange.ProtocolVersion<<4 | 8, 1, 2, 3}
		if got, known := r.open(r.seal(datagram, true)); !bytes.Equal(got, datagram) || !known {
			t.Errorf("a sealed datagram opens as %x, %v", got, known)
		}
		for i, b := range [][]byte{sealed, r.seal(plain, false), short} {
			if got, known := r.open(b); !bytes.Equal(got, plain) || !known {
				t.Errorf("open(%x) = %x, %v, want %x", b, got, known, plain)
			}
			for bit := range 8 * len(b) {
				bad := bytes.Clone(b)
				bad[bit/8] ^= 1 << (bit % 8)
				if got, _ := r.open(bad); got != nil {
					t.Errorf("with bit %d flipped it still opens, as %x", bit, got)
				}
			}
			if got, want := len(b)-len(plain), []int{sealOverhead, sealOverhead, shortBytes - len(plainHeader)}[i]; got != want {
				t.Errorf("sealing adds %d bytes, want %d", got, want)
			}
		}
	}
}

func BenchmarkSeal(b *testing.B) {
	r, err := newRing(testSecret, nil)
	if err != nil {
		b.Fatal(err)
	}
	packet := append(bytes.Clone(plainHeader), bytes.Repeat([]byte{1}, 60)...)
	for name, short := range map[string]bool{"version=1": false, "version=2": true} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if got, _ := r.open(r.seal(packet, short)); got == nil {
					b.Fatal("does not open")
				}
			}
		})
	}
}

// FuzzPacket: no bytes but those sealed under an accepted secret reach memberlist.
func FuzzPacket(f *testing.F) {
	for _, v := range readPackets(f) {
		sealed, _ := hex.DecodeString(v.Sealed)
		short, _ := hex.DecodeString(v.Short)
		plain, _ := hex.DecodeString(v.Plain)
		f.Add(short)
		f.Add(short[:len(short)-1])
		f.Add(sealed)
		f.Add(sealed[:len(sealed)/2])
		f.Add(plain)
		f.Add(append([]byte(nil), sealed[:20]...))
	}
	r, err := newRing(testSecret, nil)
	if err != nil {
		f.Fatal(err)
	}
	none := &ring{}
	known := make(map[string]bool)
	for _, v := range readPackets(f) {
		known[v.Sealed], known[v.Short] = v.Secret == string(testSecret), v.Secret == string(testSecret)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, _ := r.open(b); got != nil && !known[hex.EncodeToString(b)] {
			t.Errorf("open(%x) = %x", b, got)
		}
		if got, _ := none.open(b); got != nil && !bytes.Equal(got, b) {
			t.Errorf("without a secret open(%x) = %x", b, got)
		}
		ours(b)
	})
}
