package arith

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// vectors is testdata/sets.json, which is for readers in any language.
type vectors struct {
	Valid []struct {
		Name      string
		Method    Method
		M         uint64
		Positions []uint64 // or, if Drawn is not zero, those that splitmix draws
		Drawn     uint64
		Code      string // hexadecimal; or, if it is long,
		Bytes     int    // its length and
		SHA256    string
	}
	Invalid []struct {
		Name   string
		Method Method
		M, X   uint64
		Code   string
		Error  string // truncated or corrupt
	}
}

// splitmix draws n different positions below m: the high words of m times the numbers of
// SplitMix64 from state 0 on, without duplicates.
func splitmix(m, n uint64) []uint64 {
	seen := make(map[uint64]bool, n)
	for state := uint64(0); uint64(len(seen)) < n; {
		state += 0x9e3779b97f4a7c15
		z := state
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		z ^= z >> 31
		seen[num(0).Rsh(num(0).Mul(num(z), num(m)), 64).Uint64()] = true
	}
	positions := make([]uint64, 0, n)
	for p := range seen {
		positions = append(positions, p)
	}
	slices.Sort(positions)
	return positions
}

func TestVectors(t *testing.T) {
	file, err := os.ReadFile("testdata/sets.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(file, &v); err != nil {
		t.Fatal(err)
	}
	for _, c := range v.Valid {
		positions := c.Positions
		if c.Drawn > 0 {
			positions = splitmix(c.M, c.Drawn)
		}
		code := AppendSet(nil, c.Method, c.M, positions)
		if c.SHA256 == "" {
			if got := hex.EncodeToString(code); got != c.Code {
				t.Errorf("%s: AppendSet = %s, want %s", c.Name, got, c.Code)
			}
		} else if sum := sha256.Sum256(code); hex.EncodeToString(sum[:]) != c.SHA256 || len(code) != c.Bytes {
			t.Errorf("%s: AppendSet = %d bytes of hash %x, want %d of %s", c.Name, len(code), sum, c.Bytes, c.SHA256)
		}
		got, err := decodeSet(nil, c.Method, code, c.M, uint64(len(positions)))
		if err != nil || !slices.Equal(got, positions) {
			t.Errorf("%s: DecodeSet = %d positions, %v", c.Name, len(got), err)
		}
	}
	for _, c := range v.Invalid {
		want := map[string]error{"truncated": ErrTruncated, "corrupt": ErrCorrupt}[c.Error]
		code, err := hex.DecodeString(c.Code)
		if err != nil || want == nil {
			t.Fatalf("%s: a broken vector", c.Name)
		}
		if _, err := decodeSet(nil, c.Method, code, c.M, c.X); !errors.Is(err, want) {
			t.Errorf("%s: DecodeSet = %v, want %v", c.Name, err, want)
		}
	}
	if len(v.Valid) < 20 || len(v.Invalid) < 10 {
		t.Errorf("%d valid and %d invalid vectors", len(v.Valid), len(v.Invalid))
	}
}

// TestSpecification runs the examples of the normative text.
func TestSpecification(t *testing.T) {
	text, err := os.ReadFile("../digest/CODERS.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := 0
	for _, block := range strings.Split(string(text), "\n```set ")[1:] {
		head, rest, _ := strings.Cut(block, "\n")
		want, _, _ := strings.Cut(rest, "\n```")
		values := map[string]string{}
		for _, field := range strings.Fields(head) {
			name, value, _ := strings.Cut(field, "=")
			values[name] = value
		}
		method, err1 := strconv.ParseUint(values["method"], 10, 8)
		m, err2 := strconv.ParseUint(values["m"], 10, 64)
		if err1 != nil || err2 != nil {
			t.Fatalf("%q: %v, %v", head, err1, err2)
		}
		positions := parsePositions(t, values["positions"])
		code := AppendSet(nil, Method(method), m, positions)
		if hex.EncodeToString(code) != want {
			t.Errorf("%s: AppendSet = %x, the text says %s", head, code, want)
		}
		if slow := slowSet(Method(method), m, positions); !bytes.Equal(slow, code) {
			t.Errorf("%s: the slow coder says %x", head, slow)
		}
		examples++
	}
	if examples < 4 {
		t.Errorf("%d examples in the text", examples)
	}
}

func parsePositions(t *testing.T, list string) (positions []uint64) {
	t.Helper()
	for _, p := range strings.Split(list, ",") {
		v, err := strconv.ParseUint(p, 10, 64)
		if err != nil {
			t.Fatalf("%q: %v", list, err)
		}
		positions = append(positions, v)
	}
	return positions
}
