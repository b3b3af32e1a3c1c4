package invalidation

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/summarycache/summarycache/gossip/internal/wire"
)

// codecs decode a message and encode it again.
var codecs = map[string]func([]byte) (again []byte, err error){
	"push": func(b []byte) ([]byte, error) {
		p, err := decodePush(b)
		return p.append(nil), err
	},
	"receipt": func(b []byte) ([]byte, error) {
		p, err := decodeReceipt(b)
		return p.append(nil), err
	},
	"recall": func(b []byte) ([]byte, error) {
		known, err := decodeRecall(b)
		return appendRecall(nil, known), err
	},
	"logs": func(b []byte) ([]byte, error) {
		m, err := decodeAnswer(b)
		return m.append(nil), err
	},
	// The text by which a request names an entry.
	"entry": func(b []byte) ([]byte, error) {
		r := newReader("entry", b)
		id, ok := ParseID(string(r.Rest()))
		if !ok {
			r.Fail("entry")
		}
		return []byte(id.String()), r.Err
	},
	// No message: what a log that is known up to a number adds to the sum of a peer.
	"share": func(b []byte) ([]byte, error) {
		r := newReader("share", b)
		l := log{Log: r.log(), known: r.Uint64("known")}
		if share := r.Uint32("share"); share != l.sum() {
			r.Fail("share")
		}
		return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(l.Log.append(nil), l.known), l.sum()), r.End()
	},
}

// A vector is a message; Field is what is wrong with it, "" = nothing.
type vector struct{ Name, Message, Hex, Field string }

func readVectors(t testing.TB) (all []vector) {
	t.Helper()
	b, err := os.ReadFile("testdata/vectors.json")
	if err == nil {
		err = json.Unmarshal(b, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestVectors(t *testing.T) {
	for _, v := range readVectors(t) {
		b, err := hex.DecodeString(strings.ReplaceAll(v.Hex, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		again, err := codecs[v.Message](b)
		switch {
		case v.Field == "" && (err != nil || !bytes.Equal(again, b)):
			t.Errorf("%s: %x, %v", v.Name, again, err)
		case v.Field != "" && (!errors.Is(err, wire.ErrMalformed) || !strings.Contains(err.Error(), ": "+v.Field+" at")):
			t.Errorf("%s: %v, want something wrong with %s", v.Name, err, v.Field)
		}
		if v.Field == "" {
			for n := range b { // every cut is an error, but for a push between two entries
				if again, err := codecs[v.Message](b[:n]); err == nil && !bytes.Equal(again, b[:n]) {
					t.Errorf("%s, cut to %d bytes: %x", v.Name, n, again)
				}
			}
		}
	}
}

// TestExample runs the messages of PROTOCOL.md, section 12.4.
func TestExample(t *testing.T) {
	doc, err := os.ReadFile("../PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^((?:[0-9a-f]{2})+(?: (?:[0-9a-f]{2})+)*)(?:  .*)?$`)
	blocks := regexp.MustCompile("(?ms)^```invalidation\n(.*?)^```$").FindAllStringSubmatch(string(doc), -1)
	if len(blocks) != 4 {
		t.Fatalf("%d examples", len(blocks))
	}
	for i, message := range []string{"push", "receipt", "recall", "logs"} {
		var text strings.Builder
		for _, m := range line.FindAllStringSubmatch(blocks[i][1], -1) {
			text.WriteString(strings.ReplaceAll(m[1], " ", ""))
		}
		b, err := hex.DecodeString(text.String())
		if err != nil {
			t.Fatal(err)
		}
		if i >= 2 { // a frame
			if n := int(b[1]) | int(b[2])<<8; n != len(b)-5 {
				t.Errorf("%s has %d bytes, and says %d", message, len(b)-5, n)
			}
			b = b[5:]
		}
		if again, err := codecs[message](b); err != nil || !bytes.Equal(again, b) {
			t.Errorf("%s: %x, %v", message, again, err)
		}
	}
}

// FuzzMessages: whatever arrives is refused, or is what its decoder's encoder writes.
func FuzzMessages(f *testing.F) {
	for _, v := range readVectors(f) {
		b, _ := hex.DecodeString(strings.ReplaceAll(v.Hex, " ", ""))
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for name, codec := range codecs {
			if again, err := codec(b); err == nil && !bytes.Equal(again, b) {
				t.Errorf("%s: %x decodes and encodes to %x", name, b, again)
			}
		}
	})
}

func TestTarget(t *testing.T) {
	for _, c := range []struct {
		target   Target
		identity string
		want     bool
	}{
		{Target{Kind: Identity, Name: "GET http://a/x"}, "GET http://a/x", true},
		{Target{Kind: Identity, Name: "GET http://a/x"}, "GET http://a/x\nAccept: b", true},
		{Target{Kind: Identity, Name: "GET http://a/x"}, "GET http://a/xy", false},
		{Target{Kind: Prefix, Name: "GET http://a/x"}, "GET http://a/xy\nAccept: b", true},
		{Target{Kind: Prefix, Name: "GET http://a/x"}, "GET http://a/", false},
		{Target{Kind: Prefix, Name: ""}, "any", true},
		{Target{Kind: Everything}, "", true},
		{Target{Kind: 77, Name: "x"}, "y", true},
		{Target{Kind: Tag, Name: "x"}, "y", true},
		{Target{Kind: Pattern, Name: "GET http://a/*/x"}, "GET http://a/b/x\nAccept: b", true},
		{Target{Kind: Pattern, Name: "GET http://a/*/x"}, "GET http://a/b/xy", false},
		{Target{Kind: Identity, Name: "GET http://a/x", Soft: true}, "GET http://a/xy", false},
	} {
		if got := c.target.Matches(c.identity); got != c.want {
			t.Errorf("%v matches %q: %v", c.target, c.identity, got)
		}
	}
	for _, bad := range []Target{{}, {Kind: 6}, {Kind: Tag}, {Kind: Everything, Name: "x"}, {Kind: Identity, Name: strings.Repeat("x", MaxName+1)}} {
		if bad.Check() == nil {
			t.Errorf("Check accepts %v", bad)
		}
	}
}

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"/a", "/a", true}, {"/a", "/ab", false}, {"*", "", true}, {"*", "x", true}, {"/a/*", "/a/", true}, {"/a/*", "/a", false},
		{"*.css", "/x/y.css", true}, {"*.css", "/x.css/y", false}, {"a*a", "a", false}, {"a*a", "aa", true}, {"/*/x/*", "/a/b/x/y", true},
		{"a*b*c", "a-c-b", false}, {"a*b*c", "abbc", true}, {"utm_*", "utm_source", true}, {"", "", true}, {"", "x", false},
	} {
		if got := Glob(c.pattern, c.s); got != c.want {
			t.Errorf("Glob(%q, %q) = %v, want %v", c.pattern, c.s, got, c.want)
		}
	}
}
