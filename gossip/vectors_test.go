package gossip

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/internal/guard"
)

// TestVectors: what peers compute alike of secrets, names and metadata (PROTOCOL.md 2.5, 3.1, 5.5, 10).
func TestVectors(t *testing.T) {
	var v struct {
		Canaries []struct{ Secret, Canary string } // in the order of the bytes in messages
		Members  []struct{ Name, Metadata, Hash, SHA256 string }
		Ranges   []struct {
			Bits int
			Hex  string // the beginning of a stream of a peer that knows Members
		}
	}
	b, err := os.ReadFile("testdata/vectors.json")
	if err == nil {
		err = json.Unmarshal(b, &v)
	}
	if err != nil || len(v.Canaries) < 3 || len(v.Members) < 3 || len(v.Ranges) < 3 {
		t.Fatalf("testdata/vectors.json: %v", err)
	}
	for _, c := range v.Canaries {
		got := hex.EncodeToString(binary.LittleEndian.AppendUint32(nil, canaryOf(digest.SeedFrom([]byte(c.Secret)))))
		if got != c.Canary {
			t.Errorf("the canary of %q is %s, want %s", c.Secret, got, c.Canary)
		}
	}
	for _, r := range v.Ranges {
		sums := make([]uint32, 1<<r.Bits)
		for _, m := range v.Members {
			meta, err := hex.DecodeString(strings.ReplaceAll(m.Metadata, " ", ""))
			if err == nil {
				_, err = exchange.DecodeMeta(meta)
			}
			if err != nil {
				t.Fatal(err)
			}
			hash := memberSum(m.Name, meta)
			if got := fmt.Sprintf("%016x", hash); got != m.Hash {
				t.Errorf("the hash of %s is %s, want %s", m.Name, got, m.Hash)
			}
			if got := fmt.Sprintf("%x", guard.HashOfMeta(m.Name, meta)); got != m.SHA256 {
				t.Errorf("the answer to a newcomer's probe has %s for %s, want %s", got, m.Name, m.SHA256)
			}
			sums[guard.RangeOf(exchange.IDOf(m.Name), 1<<r.Bits)] += uint32(hash)
		}
		stream := []byte{guard.SumsByte, byte(r.Bits)}
		for _, sum := range sums {
			stream = binary.LittleEndian.AppendUint32(stream, sum)
		}
		if got := hex.EncodeToString(stream); got != r.Hex {
			t.Errorf("2^%d sums are %s, want %s", r.Bits, got, r.Hex)
		}
	}
}
