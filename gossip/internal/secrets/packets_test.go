package secrets

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/summarycache/summarycache/gossip/exchange"
)

var testSecret = []byte("a secret of the test cluster")

// packetVectors are the keys derived from secrets, and packets sealed under them.
type packetVectors []struct {
	Cluster string // its name; empty if it has none
	Secret  string // its bytes as text; empty if there is none, and then no keys
	ID      string // name, 4 bytes as they travel, hex
	Public  string // Ed25519, hex
	Seed    uint64 // of digests
	Plain   string // a packet, hex
	Sealed  string // what travels, hex
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
	all, accept := readPackets(t), [][]byte{[]byte("one that is accepted too")}
	for _, v := range all {
		r, err := New(v.Cluster, []byte(v.Secret), accept[:min(len(v.Secret), 1)])
		if err != nil {
			t.Fatal(err)
		}
		added := markBytes
		if v.Secret != "" {
			s := r.Secrets[0]
			if got := Text(s.ID); got != v.ID {
				t.Errorf("%q is named %s, want %s", v.Secret, got, v.ID)
			}
			if got := fmt.Sprintf("%x", s.public); got != v.Public || s.Seed != v.Seed {
				t.Errorf("%q has public key %s and seed %d, want %s and %d", v.Secret, got, s.Seed, v.Public, v.Seed)
			}
			added = SealBytes
		}
		plain, _ := hex.DecodeString(v.Plain)
		sealed, _ := hex.DecodeString(v.Sealed)
		if got := r.Seal(plain); !bytes.Equal(got, sealed) || len(got) != len(plain)+added {
			t.Errorf("seal(%x) = %x, want %x", plain, got, sealed)
		}
		if got := r.Open(sealed); !bytes.Equal(got, plain) {
			t.Errorf("open(%x) = %x, want %x", sealed, got, plain)
		}
		for _, other := range all {
			if other.Cluster == v.Cluster && other.Secret == v.Secret {
				continue
			}
			r, err := New(other.Cluster, []byte(other.Secret), nil)
			if got := r.Open(sealed); err != nil || got != nil && (other.Secret != "" || other.Cluster != "") {
				t.Errorf("a packet of cluster %q opens in cluster %q, as %x, %v", v.Cluster, other.Cluster, got, err)
			}
		}
		if v.Secret == "" {
			continue // a mark is no seal
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

// TestNewRefuses: secrets are long enough, few enough, and there is one to use if there are any.
func TestNewRefuses(t *testing.T) {
	of := func(n int) (list [][]byte) {
		for i := range n {
			list = append(list, fmt.Appendf(nil, "a secret with the number %d", i))
		}
		return list
	}
	long := bytes.Repeat([]byte{'x'}, Min)
	for name, tt := range map[string]struct {
		primary []byte
		accept  [][]byte
		secrets int // -1 = an error
	}{
		"none":                {nil, nil, 0},
		"none to use":         {nil, of(1), -1},
		"none of two to use":  {nil, of(2), -1},
		"one":                 {long, nil, 1},
		"a short one":         {long[1:], nil, -1},
		"a short one besides": {long, [][]byte{long[1:]}, -1},
		"as many as may be":   {long, of(exchange.MaxSecrets - 1), exchange.MaxSecrets},
		"one too many":        {long, of(exchange.MaxSecrets), -1},
		"the same again":      {long, append(of(exchange.MaxSecrets-1), long), exchange.MaxSecrets},
	} {
		r, err := New("", tt.primary, tt.accept)
		if (err != nil) != (tt.secrets < 0) || err == nil && len(r.Secrets) != tt.secrets {
			t.Errorf("%s: New(%d bytes, %d) = %+v, %v, want %d secrets", name, len(tt.primary), len(tt.accept), r, err, tt.secrets)
		}
	}
}

func BenchmarkSeal(b *testing.B) {
	r, err := New("", testSecret, nil)
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
	r, err := New("", testSecret, nil)
	if err != nil {
		f.Fatal(err)
	}
	none := &Ring{}
	known := make(map[string]bool)
	for _, v := range readPackets(f) {
		known[v.Sealed] = v.Secret == string(testSecret) && v.Cluster == ""
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
