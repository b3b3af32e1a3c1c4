package exchange

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip/internal/wire"
)

// vectors.json serves any implementation: each valid case is a message in hex with
// its fields, each invalid one names the field that is wrong.
type vectors struct {
	Valid []struct {
		Name    string          `json:"name"`
		Message string          `json:"message"` // advert, metadata, or a frame's name
		Hex     string          `json:"hex"`     // a frame's with its header
		Fields  json.RawMessage `json:"fields"`
	} `json:"valid"`
	// Later ones are as programs of the future may send them: they mean what the valid message of that name does.
	Later []struct {
		Name    string `json:"name"`
		Message string `json:"message"`
		Hex     string `json:"hex"`
		As      string `json:"as"`
	} `json:"later"`
	Invalid []struct {
		Name    string `json:"name"`
		Message string `json:"message"`
		Hex     string `json:"hex"`
		Field   string `json:"field"`
		Error   string `json:"error"` // malformed or version
	} `json:"invalid"`
	Hashes []struct {
		Head string `json:"head"` // hex
		Hash string `json:"hash"`
	} `json:"hashes"`
	IDs map[string]string `json:"ids"` // name → ID in hex
}

func readVectors(t testing.TB) vectors {
	t.Helper()
	b, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// codec decodes a message and encodes it again.
type codec func(b []byte) (fields any, again []byte, err error)

var codecs = map[string]codec{
	"advert": func(b []byte) (any, []byte, error) {
		a, err := DecodeAdvert(b)
		return a, a.AppendTo(nil), err
	},
	"step": func(b []byte) (any, []byte, error) {
		s, err := DecodeStep(b)
		return s, s.AppendTo(nil), err
	},
	"note": func(b []byte) (any, []byte, error) {
		n, err := decodeNote(b)
		return n, n.AppendTo(nil), err
	},
	"question": func(b []byte) (any, []byte, error) {
		q, err := DecodeQuestion(b)
		return q, q.AppendTo(nil), err
	},
	"reply": func(b []byte) (any, []byte, error) {
		a, err := DecodeReply(b)
		return a, a.AppendTo(nil), err
	},
	"metadata": func(b []byte) (any, []byte, error) {
		m, err := DecodeMeta(b)
		return m, m.AppendTo(nil), err
	},
	"hello": framed(FrameHello, func(b []byte) (any, []byte, error) {
		h, err := DecodeHello(b)
		return h, h.AppendTo(nil), err
	}),
	"welcome": framed(FrameWelcome, func(b []byte) (any, []byte, error) {
		w, err := DecodeWelcome(b)
		return w, w.AppendTo(nil), err
	}),
	"refuse": framed(FrameRefuse, func(b []byte) (any, []byte, error) {
		r, err := DecodeRefusal(b)
		if err != nil {
			return nil, nil, err
		}
		return map[string]string{"Err": r.Err.Error(), "Text": r.Text}, r.AppendTo(nil), nil
	}),
	"get": framed(FrameGet, func(b []byte) (any, []byte, error) {
		g, err := DecodeGet(b)
		return g, g.AppendTo(nil), err
	}),
	"same": framed(FrameSame, func(b []byte) (any, []byte, error) {
		r := DecodeAnswer(Fetch{Get: Get{Origin: headAt(b).Origin}}, FrameSame, b, digest.Limits{})
		if r.Err != nil {
			return nil, nil, r.Err
		}
		fields := struct{ Head Head }{r.Head}
		return fields, Answer{kind: FrameSame, head: r.Head}.AppendTo(nil), nil
	}),
	"busy": framed(FrameBusy, func(b []byte) (any, []byte, error) {
		d, err := decodeBusy(b)
		return d, appendBusy(nil, d), err
	}),
	"sync": framed(FrameSync, func(b []byte) (any, []byte, error) {
		h, err := DecodeVector(b)
		return h, AppendVector(nil, FrameSync, h), err
	}),
	"vector": framed(FrameVector, func(b []byte) (any, []byte, error) {
		h, err := DecodeVector(b)
		return h, AppendVector(nil, FrameVector, h), err
	}),
}

// headAt returns the head that b begins with.
func headAt(b []byte) Head {
	r := newReader("", b)
	return r.head()
}

// framed wraps the codec of a payload with that of its frame.
func framed(want FrameType, c codec) codec {
	return func(b []byte) (any, []byte, error) {
		if len(b) < FrameHeader {
			return nil, nil, &wire.FormatError{Message: "frame", Field: "header", Err: ErrMalformed}
		}
		t, n, err := DecodeFrameHeader([FrameHeader]byte(b), 1<<20)
		if err != nil {
			return nil, nil, err
		}
		if t != want || n != len(b)-FrameHeader {
			return nil, nil, &wire.FormatError{Message: "frame", Field: "type", Err: ErrMalformed}
		}
		return c(b[FrameHeader:])
	}
}

// canonical is JSON with its keys in order.
func canonical(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.UseNumber() // 64-bit integers must not pass through floating point
	var any any
	if err := d.Decode(&any); err != nil {
		t.Fatal(err)
	}
	b, _ = json.Marshal(any)
	return string(b)
}

func TestVectors(t *testing.T) {
	v := readVectors(t)
	valid := map[string]string{}
	for _, tc := range v.Valid {
		valid[tc.Name] = canonical(t, tc.Fields)
		in := unhex(t, tc.Hex)
		fields, again, err := codecs[tc.Message](in)
		if err != nil {
			t.Errorf("%s: decode(%x) = %v", tc.Name, in, err)
			continue
		}
		if string(again) != string(in) {
			t.Errorf("%s: encodes to %x, want %x", tc.Name, again, in)
		}
		if got, want := canonical(t, fields), canonical(t, tc.Fields); got != want {
			t.Errorf("%s: fields %s, want %s", tc.Name, got, want)
		}
	}
	for _, tc := range v.Later {
		fields, _, err := codecs[tc.Message](unhex(t, tc.Hex))
		if got := canonical(t, fields); err != nil || got != valid[tc.As] {
			t.Errorf("%s: fields %s, %v, want %s", tc.Name, got, err, valid[tc.As])
		}
	}
	for _, tc := range v.Invalid {
		in := unhex(t, tc.Hex)
		_, _, err := codecs[tc.Message](in)
		want := ErrMalformed
		if tc.Error == "version" {
			want = ErrVersion
		}
		var fe *wire.FormatError
		if !errors.Is(err, want) || !errors.As(err, &fe) || fe.Field != tc.Field {
			t.Errorf("%s: decode(%x) = %v, want %q of field %q", tc.Name, in, err, tc.Error, tc.Field)
		}
	}
	for name, want := range v.IDs {
		if got := fmt.Sprintf("%016x", uint64(IDOf(name))); got != want {
			t.Errorf("IDOf(%q) = %s, want %s", name, got, want)
		}
	}
	for _, tc := range v.Hashes {
		if got := fmt.Sprintf("%016x", headAt(unhex(t, tc.Head)).sum()); got != tc.Hash {
			t.Errorf("the hash of %s is %s, want %s", tc.Head, got, tc.Hash)
		}
	}
}

// TestLengths checks the limits of PROTOCOL.md against the largest messages.
func TestLengths(t *testing.T) {
	most := ^uint64(0)
	h := Head{Origin: ID(most), Version: Version{most, most, most}, State: most, Keys: most}
	if n := len(Advert{Announce, h}.AppendTo(nil)); n > MaxAdvert {
		t.Errorf("the longest advert has %d bytes, want at most %d", n, MaxAdvert)
	}
	if _, err := DecodeStep(Step{Step: most, Keys: -1 << 63, Change: make([]byte, MaxDatagram)}.AppendTo(nil)); !errors.Is(err, ErrMalformed) {
		t.Errorf("too long a step: %v, want ErrMalformed", err)
	}
	name := strings.Repeat("n", MaxName)
	addr := strings.Repeat("a", MaxAddress)
	m := Meta{1, 1, most, ^uint32(0), strings.Repeat("s", MaxService), make([]uint32, MaxSecrets), strings.Repeat("z", MaxZone), true, true, strings.Repeat("s", SettingBytes*MaxSettings), strings.Repeat("f", FarewellBytes)}
	if n := len(m.AppendTo(nil)); n > MaxMeta {
		t.Errorf("the longest metadata has %d bytes, want at most %d", n, MaxMeta)
	}
	heads := make([]Head, MaxHeads+1)
	for i := range heads {
		heads[i] = h
		heads[i].Origin = ID(i)
	}
	for _, frame := range [][]byte{
		Hello{1, 1, true, most, 0, name, addr, name}.AppendTo(nil),
		Welcome{1, most, 0, most, name, addr, name}.AppendTo(nil),
		(&Refusal{ErrVersion, strings.Repeat("x", 500)}).AppendTo(nil),
		Get{Origin: ID(most), Have: Version{most, most, most}, State: most, Limit: most}.AppendTo(nil),
		Answer{kind: FrameSame, head: h}.AppendTo(nil),
		Answer{kind: FrameBusy, wait: time.Hour}.AppendTo(nil),
		Answer{kind: FrameUnknown}.AppendTo(nil),
		AppendVector(nil, FrameSync, heads),
	} {
		typ, n, err := DecodeFrameHeader([FrameHeader]byte(frame), 0)
		if err != nil || n != len(frame)-FrameHeader {
			t.Errorf("the longest %v: header says %d of %d bytes, %v", typ, n, len(frame)-FrameHeader, err)
		}
	}
	got, err := DecodeVector(AppendVector(nil, FrameSync, heads)[FrameHeader:])
	if err != nil || len(got) != MaxHeads {
		t.Errorf("the longest vector decodes to %d heads, %v, want %d", len(got), err, MaxHeads)
	}
}

// TestNumbersOfThePage reads numbers from PROTOCOL.md, and publish's from the comment of its setting.
func TestNumbersOfThePage(t *testing.T) {
	for _, tc := range []struct {
		file, text string
		want       int
	}{
		{"../PROTOCOL.md", `or (\d+) positions have changed`, enoughFlips},
		{"config.go", `fewer than (\d+) changes wait for more`, enoughFlips},
		{"../PROTOCOL.md", `datagram \| an advert (\d+) bytes`, MaxAdvert},
		{"../PROTOCOL.md", `a step, and those of § 12, ([\d,]+);`, MaxDatagram},
		{"../PROTOCOL.md", `metadata \| 512 bytes; (\d+) are written`, MaxMeta},
		{"../PROTOCOL.md", `name \| (\d+) bytes`, MaxName},
		{"../PROTOCOL.md", `secrets accepted \| (\d+) `, MaxSecrets},
		{"../PROTOCOL.md", `number of heads \(uvarint, ≤ ([\d,]+)\)`, MaxHeads},
		{"../PROTOCOL.md", `zone: where the peer runs, 1 to (\d+) letters`, MaxZone},
		{"../PROTOCOL.md", `longer than (\d+) bytes \|\n.* names of the secrets`, MaxService},
	} {
		page, err := os.ReadFile(tc.file)
		found := regexp.MustCompile(tc.text).FindAllSubmatch(page, -1)
		if err != nil || len(found) != 1 {
			t.Errorf("%s has %q %d times, %v, want it once", tc.file, tc.text, len(found), err)
			continue
		}
		if got := strings.ReplaceAll(string(found[0][1]), ",", ""); got != fmt.Sprint(tc.want) {
			t.Errorf("%s says %s, the program %d: %s", tc.file, got, tc.want, tc.text)
		}
	}
}

func TestAcceptNamesTheReason(t *testing.T) {
	for _, tc := range []struct {
		name string
		h    Hello
		want error
	}{
		{"same", Hello{MinVersion: 1, MaxVersion: 1, Canary: 9}, nil},
		{"newer that speaks ours too", Hello{MinVersion: 1, MaxVersion: 4, Canary: 9}, nil},
		{"newer only", Hello{MinVersion: 3, MaxVersion: 4, Canary: 9}, ErrVersion},
		{"other hash", Hello{MinVersion: 1, MaxVersion: 1, Canary: 8}, ErrCanary},
	} {
		if err := tc.h.Accept(9); !errors.Is(err, tc.want) {
			t.Errorf("%s: Accept = %v, want %v", tc.name, err, tc.want)
		}
	}
}

func TestValidName(t *testing.T) {
	for name, want := range map[string]bool{
		"p1": true, "cache-7.example_com:8080": true, strings.Repeat("x", 63): true,
		"": false, "a b": false, "a/b": false, "é": false, "a\n": false, strings.Repeat("x", 64): false,
	} {
		if got := ValidName(name); got != want {
			t.Errorf("ValidName(%q) = %v, want %v", name, got, want)
		}
	}
}

// TestWorkedExample decodes the messages in PROTOCOL.md and encodes them again.
func TestWorkedExample(t *testing.T) {
	doc, err := os.ReadFile("../PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$").FindAllStringSubmatch(string(doc), -1)
	if len(blocks) < 2 {
		t.Fatalf("PROTOCOL.md has %d examples", len(blocks))
	}
	field := regexp.MustCompile(`(?m)^((?:[0-9a-f]{2})+(?: (?:[0-9a-f]{2})+)*)(?:  .*)?$`)
	for _, block := range blocks {
		if block[1] == "text" || block[1] == "invalidation" { // of which package invalidation has a test
			continue
		}
		var text strings.Builder
		for _, m := range field.FindAllStringSubmatch(block[2], -1) {
			text.WriteString(m[1])
		}
		in := unhex(t, text.String())
		_, again, err := codecs[block[1]](in)
		if err != nil || string(again) != string(in) {
			t.Errorf("the example of %s, %x, decodes and encodes to %x, %v", block[1], in, again, err)
		}
	}
}
