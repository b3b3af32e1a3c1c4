package squid

import (
	"bytes"
	"encoding/hex"
	"os"
	"strings"
	"testing"
)

// The example in FORMAT.md is what the code writes.
func TestFormatExample(t *testing.T) {
	page, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks [][]byte
	for _, part := range strings.Split(string(page), "```hex\n")[1:] {
		text, _, _ := strings.Cut(part, "```")
		b, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
		if err != nil {
			t.Fatal(err)
		}
		blocks = append(blocks, b)
	}
	if len(blocks) != 2 {
		t.Fatalf("%d blocks of hex, want header and mask", len(blocks))
	}
	k := KeyOf(Get, "http://example.com/", "")
	if !strings.Contains(string(page), "`"+hex.EncodeToString(k[:])+"`") {
		t.Errorf("the key is %x", k)
	}
	b, err := NewBuilder(4, 8)
	if err != nil {
		t.Fatal(err)
	}
	b.Add(k)
	d, err := b.Digest()
	if err != nil {
		t.Fatal(err)
	}
	got := encode(d)
	want := append(append(blocks[0], make([]byte, headerSize-len(blocks[0]))...), blocks[1]...)
	if !bytes.Equal(got, want) {
		t.Errorf("the example is % x ... % x", got[:22], got[headerSize:])
	}
}
