package digest

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the goldens in testdata (never the vectors)")

// vectors is testdata/vectors.json, written for readers in any language: numbers
// of 64 bits and bytes are hexadecimal strings.
type vectors struct {
	Format    int
	Seeds     []struct{ Secret, Seed, Tag string }
	Keys      []struct{ Seed, Identity, Key string }
	Numbers   []struct{ Seed, Number, Key string }
	Positions []struct {
		Bits      uint64
		Hashes    int
		Key       string
		Positions []uint64
	}
	Filters []filterVector
	Pieces  []struct {
		Filter string
		Span   uint64
		Hex    string
	}
	Deltas   []struct{ Name, Base, Target, Hex string }
	Extended []struct{ Name, Filter, Base, Hex string }
	Invalid  []struct {
		Name, Hex, Base, Error, Field string
		Offset                        int
	}
}

type filterVector struct {
	Name            string
	Bits            uint64
	Hashes          int
	Profile         Profile
	Seed            string
	Epoch, Sequence uint64
	Keys            []string
	State           string
	Positions       []uint64
	Hex             string
}

func loadVectors(t testing.TB) (v vectors) {
	t.Helper()
	b, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func number(t testing.TB, s string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(s, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// counters returns the counting filter that a vector describes, frozen at the vector's version.
func (v filterVector) counters(t testing.TB) *CountingFilter {
	t.Helper()
	g := Geometry{Bits: v.Bits, Hashes: v.Hashes, Profile: v.Profile, Seed: number(t, v.Seed)}
	c, err := NewCountingFilter(g, v.Epoch)
	if err != nil {
		t.Fatalf("%s: %v", v.Name, err)
	}
	for _, k := range v.Keys {
		c.Add(Key(number(t, k)))
	}
	f := *c.Advance()
	f.version.Sequence = v.Sequence
	c.current.Store(&f)
	return c
}

func TestVectorKeys(t *testing.T) {
	v := loadVectors(t)
	if v.Format != formatVersion {
		t.Fatalf("vectors are of format %d", v.Format)
	}
	for _, s := range v.Seeds {
		seed := SeedFrom([]byte(s.Secret))
		if seed != number(t, s.Seed) || uint64(seedTag(seed)) != number(t, s.Tag) {
			t.Errorf("secret %q: seed %016x, tag %08x, want %s, %s", s.Secret, seed, seedTag(seed), s.Seed, s.Tag)
		}
	}
	for _, k := range v.Keys {
		if got := KeyOfString(number(t, k.Seed), k.Identity); uint64(got) != number(t, k.Key) {
			t.Errorf("KeyOf(%s, %q) = %016x, want %s", k.Seed, k.Identity, got, k.Key)
		}
	}
	for _, n := range v.Numbers {
		if got := KeyOfUint64(number(t, n.Seed), number(t, n.Number)); uint64(got) != number(t, n.Key) {
			t.Errorf("KeyOfUint64(%s, %s) = %016x, want %s", n.Seed, n.Number, got, n.Key)
		}
	}
	for _, p := range v.Positions {
		g := Geometry{Bits: p.Bits, Hashes: p.Hashes}
		var buf [maxHashes]uint64
		if got := g.positions(&buf, Key(number(t, p.Key))); !slices.Equal(got, p.Positions) {
			t.Errorf("%v: positions of %s = %v, want %v", g, p.Key, got, p.Positions)
		}
	}
}

func TestVectorFilters(t *testing.T) {
	v := loadVectors(t)
	filters := map[string]*Filter{}
	for _, f := range v.Filters {
		c := f.counters(t)
		want := c.Current()
		filters[f.Name] = want
		lim := Limits{Seed: want.geometry.Seed, Profile: want.geometry.Profile}
		if want.version.State != number(t, f.State) || !slices.Equal(want.list(), f.Positions) {
			t.Errorf("%s: state %016x, positions %v", f.Name, want.version.State, want.list())
		}
		if got := hex.EncodeToString(want.AppendTo(nil)); got != f.Hex {
			t.Errorf("%s: encodes to\n%s, want\n%s", f.Name, got, f.Hex)
		}
		got, err := DecodeFilter(unhex(t, f.Hex), lim)
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
			continue
		}
		equalFilters(t, got, want)
	}
	for _, p := range v.Pieces {
		want := filters[p.Filter]
		if got := hex.EncodeToString(want.appendSpans(nil, p.Span)); got != p.Hex {
			t.Errorf("%s in pieces of %d: encodes to\n%s, want\n%s", p.Filter, p.Span, got, p.Hex)
		}
		got, err := DecodeFilter(unhex(t, p.Hex), Limits{Seed: want.geometry.Seed, Profile: want.geometry.Profile})
		if err != nil {
			t.Errorf("%s in pieces of %d: %v", p.Filter, p.Span, err)
			continue
		}
		equalFilters(t, got, want)
	}
	for _, d := range v.Deltas {
		base, target := filters[d.Base], filters[d.Target]
		want, err := Diff(base, target)
		if err != nil {
			t.Errorf("%s: %v", d.Name, err)
			continue
		}
		if got := hex.EncodeToString(encode(t, want, base)); got != d.Hex {
			t.Errorf("%s: encodes to\n%s, want\n%s", d.Name, got, d.Hex)
		}
		got, err := DecodeDelta(unhex(t, d.Hex), base, Limits{Seed: base.geometry.Seed})
		if err != nil {
			t.Errorf("%s: %v", d.Name, err)
			continue
		}
		if f, err := got.Apply(base); err != nil {
			t.Errorf("%s: %v", d.Name, err)
		} else {
			equalFilters(t, f, target)
		}
	}
	for _, e := range v.Extended {
		got, err := DecodeFilter(unhex(t, e.Hex), Limits{})
		if e.Base != "" {
			var d *Delta
			if d, err = DecodeDelta(unhex(t, e.Hex), filters[e.Base], Limits{}); err == nil {
				got, err = d.Apply(filters[e.Base])
			}
		}
		if err != nil {
			t.Errorf("%s: %v", e.Name, err)
			continue
		}
		equalFilters(t, got, filters[e.Filter])
	}
	for _, bad := range v.Invalid {
		_, err := DecodeFilter(unhex(t, bad.Hex), Limits{Profile: AnyProfile})
		if bad.Base != "" {
			_, err = DecodeDelta(unhex(t, bad.Hex), filters[bad.Base], Limits{})
		}
		var format *FormatError
		if !errors.As(err, &format) || !errors.Is(err, sentinels[bad.Error]) || format.Field != bad.Field || format.Offset != bad.Offset {
			t.Errorf("%s: %v, want %q in %q at byte %d", bad.Name, err, bad.Error, bad.Field, bad.Offset)
		}
	}
}

// sentinels are the errors as FORMAT.md names them.
var sentinels = map[string]error{
	"version":   ErrVersion,
	"too large": ErrTooLarge,
	"seed":      ErrSeed,
	"base":      ErrBase,
	"corrupt":   ErrCorrupt,
}

// TestFormatExamples runs the fenced blocks of FORMAT.md: a block after "```dump" must be the
// output of Dump for the bytes in its second column.
func TestFormatExamples(t *testing.T) {
	text, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```dump\n")[1:]
	if len(blocks) < 2 {
		t.Fatalf("FORMAT.md has %d examples", len(blocks))
	}
	for i, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		if got := dumpOf(bytesOfDump(t, block)); got != block {
			t.Errorf("example %d is\n%s\nwant\n%s", i+1, got, block)
		}
		if i > 0 {
			continue
		}
		if _, err := DecodeFilter(bytesOfDump(t, block), Limits{}); err != nil {
			t.Errorf("example %d: %v", i+1, err)
		}
	}
}

func dumpOf(b []byte) string {
	var s strings.Builder
	_ = Dump(&s, b)
	return s.String()
}

func bytesOfDump(t *testing.T, dump string) (b []byte) {
	for line := range strings.Lines(dump) {
		if len(line) < 8 {
			t.Fatalf("not a line of a dump: %q", line)
		}
		column := line[8:min(len(line), 8+3*dumpBytes)]
		b = append(b, unhex(t, strings.NewReplacer(" ", "", "\n", "").Replace(column))...)
	}
	return b
}

// TestDumpGoldens shows changes of the format as readable differences.
func TestDumpGoldens(t *testing.T) {
	v := loadVectors(t)
	dumps := map[string]string{}
	for _, f := range v.Filters {
		dumps["filter-"+f.Name] = dumpOf(unhex(t, f.Hex))
	}
	for _, p := range v.Pieces {
		dumps["pieces-"+p.Filter] = dumpOf(unhex(t, p.Hex))
	}
	for _, d := range v.Deltas {
		dumps["delta-"+d.Name] = dumpOf(unhex(t, d.Hex))
	}
	for _, bad := range v.Invalid {
		dumps["invalid"] += "# " + bad.Name + "\n" + dumpOf(unhex(t, bad.Hex)) + "\n"
	}
	for name, got := range dumps {
		path := filepath.Join("testdata", name+".dump")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(path); err != nil || string(want) != got {
			t.Errorf("%s: %v: got\n%s", path, err, got)
		}
	}
	left, _ := filepath.Glob("testdata/*.dump")
	for _, path := range left {
		if name := strings.TrimSuffix(filepath.Base(path), ".dump"); dumps[name] == "" {
			t.Errorf("no test has the golden %s", path)
		}
	}
}
