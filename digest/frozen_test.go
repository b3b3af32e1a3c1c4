package digest_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/summarycache/summarycache/digest"
)

// testdata/frozen has messages that earlier versions of the program wrote, in a directory for
// each version, which is named like its revision. They are never written again. Every later
// version must be able to read them (FORMAT.md, section 9).

var freeze = flag.String("freeze", "", "write testdata/frozen/`NAME`, which must not exist")

const frozenDir = "testdata/frozen"

// A frozen message, and what it says.
type frozen struct {
	Name, Kind string
	Bits       uint64
	Hashes     int
	Profile    digest.Profile
	Secret     string // of the seed; "" = none
	First      int    // the keys are those of "object First" …
	Last       int    // … to "object Last-1"
	Epoch      uint64
	Sequence   uint64
	State      string // hexadecimal
	Base       string // of a delta: the name of the filter that it starts from
	// Of a message of some hundred kilobytes that can be made from the file of a filter, there
	// is only the hash.
	SHA256 string `json:",omitempty"`
}

func (f frozen) geometry() digest.Geometry {
	return digest.Geometry{Bits: f.Bits, Hashes: f.Hashes, Profile: f.Profile, Seed: digest.SeedFrom([]byte(f.Secret))}
}

func (f frozen) key(i int) digest.Key {
	return digest.KeyOfString(f.geometry().Seed, fmt.Sprint("object ", i))
}

func (f frozen) keys(yield func(digest.Key) bool) {
	for i := f.First; i < f.Last && yield(f.key(i)); i++ {
	}
}

// shapes are the filters from which the messages of a freeze are made: both methods,
// with and without a secret, both forms of the block method, and escapes.
var shapes = []frozen{
	{Name: "empty", Bits: 1 << 24, Hashes: 1},
	{Name: "one", Bits: 1 << 24, Hashes: 1, Last: 1, Secret: "a secret of the cluster"},
	{Name: "dense", Bits: 500, Hashes: 4, Last: 60, Profile: digest.HTTP},
	{Name: "sparse", Bits: 1 << 26, Hashes: 1, Last: 300, Secret: "a secret of the cluster"},
	{Name: "huge", Bits: 1 << 44, Hashes: 1, Last: 40},
	{Name: "half", Bits: 14_000, Hashes: 1, Last: 9_700},
	{Name: "short-blocks", Bits: 20_000, Hashes: 2, Last: 3_000},
	{Name: "short-gaps", Bits: 2_400_000, Hashes: 1, Last: 2_400, Secret: "a secret of the cluster"},
	// CODERS.md, section 1: 511 and 512 positions, 15 binary digits of m/y each, on both sides of 8192.
	{Name: "last-adaptive", Bits: 1 << 23, Hashes: 1, Last: 511},
	{Name: "first-block", Bits: 1 << 23, Hashes: 1, Last: 512},
	{Name: "long-blocks", Bits: 4_000_001, Hashes: 1, Last: 500_000},
}

func (f frozen) long() bool { return f.Last >= 100_000 }

// pieceBytes returns the length of pieces. A long message is one piece, so that its hash says all.
func (f frozen) pieceBytes() int {
	if f.long() {
		return 1 << 30
	}
	return 0
}

func hashOf(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }

// TestFreeze writes the messages of today's program, once.
func TestFreeze(t *testing.T) {
	if *freeze == "" {
		t.Skip("only with -freeze NAME")
	}
	dir := filepath.Join(frozenDir, *freeze)
	if err := os.MkdirAll(frozenDir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatalf("frozen messages are never written again: %v", err)
	}
	var all []frozen
	save := func(f frozen, v digest.Version, b []byte) {
		f.Epoch, f.Sequence, f.State = v.Epoch, v.Sequence, fmt.Sprintf("%016x", v.State)
		if f.Kind != "filter" && len(b) > 1<<16 {
			f.SHA256 = hashOf(b)
		} else if err := os.WriteFile(filepath.Join(dir, f.Name+".bin"), b, 0o644); err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	for _, s := range shapes {
		held, err := digest.NewCountingFilter(s.geometry(), 7)
		if err != nil {
			t.Fatal(err)
		}
		for i := s.First; i < s.Last; i++ {
			held.Add(s.key(i))
		}
		base, later := s, s
		before := held.Advance()
		base.Kind = "filter"
		save(base, before.Version(), before.AppendTo(nil))
		pieces := s
		pieces.Kind, pieces.Name = "pieces", s.Name+"-pieces"
		save(pieces, before.Version(), before.AppendPieces(nil, s.pieceBytes()))
		later.First, later.Last, later.Base = s.First+s.Last/20, s.Last+2+s.Last/20, s.Name
		if s.long() {
			later.First, later.Last = s.Last, 2*s.Last // another filter, so that much changes
		}
		for i := s.First; i < later.First; i++ {
			held.Remove(s.key(i))
		}
		for i := s.Last; i < later.Last; i++ {
			held.Add(s.key(i))
		}
		after, delta := held.AdvanceDelta()
		coded, err := delta.AppendTo(nil, before)
		bare, errBare := delta.AppendBare(nil, before)
		if err := errors.Join(err, errBare); err != nil {
			t.Fatal(err)
		}
		for kind, b := range map[string][]byte{"delta": coded, "bare": bare} {
			later.Kind, later.Name = kind, s.Name+"-"+kind
			save(later, after.Version(), b)
		}
	}
	slices.SortFunc(all, func(a, b frozen) int { return strings.Compare(a.Name, b.Name) })
	b, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "frozen.json"), append(b, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Today's code reads what every earlier version wrote, with the same meaning, and writes it again byte for byte.
func TestFrozen(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine that reads")
	}
	dirs, err := filepath.Glob(filepath.Join(frozenDir, "*"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("nothing is frozen: %v", err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) { readFrozen(t, dir) })
	}
}

func readFrozen(t *testing.T, dir string) {
	b, err := os.ReadFile(filepath.Join(dir, "frozen.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []frozen
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	message := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name+".bin"))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	methods := map[string]bool{}
	for _, f := range all {
		if f.SHA256 != "" {
			f.again(t, message)
			continue
		}
		b := message(f.Name)
		f.holdsItsName(t, b)
		var got *digest.Filter
		if f.Base == "" {
			got, err = f.whole(b)
		} else {
			got, err = f.change(b, message(f.Base))
		}
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
			continue
		}
		f.compare(t, got)
		if again, err := f.write(got, message); err != nil || !bytes.Equal(again, b) {
			t.Errorf("%s: is written otherwise today, in %d bytes instead of %d: %v", f.Name, len(again), len(b), err)
		}
		var dump strings.Builder
		if f.Kind != "bare" {
			digest.Dump(&dump, b)
		}
		for _, m := range regexp.MustCompile(` positions +(\w+)`).FindAllStringSubmatch(dump.String(), -1) {
			methods[m[1]] = true
		}
	}
	if len(all) < 30 || !methods["adaptive"] || !methods["block"] {
		t.Errorf("%d messages, by methods %v", len(all), methods)
	}
}

// again makes a message of which only the hash is stored, from the file of a filter.
func (f frozen) again(t *testing.T, message func(string) []byte) {
	t.Helper()
	var got *digest.Filter
	var err error
	if f.Base == "" {
		got, err = f.whole(message(strings.TrimSuffix(f.Name, "-"+f.Kind)))
	} else {
		got, err = digest.FilterOf(f.geometry(), digest.Version{Epoch: f.Epoch, Sequence: f.Sequence}, f.keys)
	}
	if err != nil {
		t.Fatal(err)
	}
	if b, err := f.write(got, message); err != nil || hashOf(b) != f.SHA256 {
		t.Errorf("%s: other bytes: %v", f.Name, err)
	}
}

// write writes the message that says what got is.
func (f frozen) write(got *digest.Filter, message func(string) []byte) ([]byte, error) {
	switch f.Kind {
	case "filter":
		return got.AppendTo(nil), nil
	case "pieces":
		return got.AppendPieces(nil, f.pieceBytes()), nil
	}
	before, err := f.whole(message(f.Base))
	if err != nil {
		return nil, err
	}
	d, err := digest.Diff(before, got)
	if err != nil {
		return nil, err
	}
	if f.Kind == "bare" {
		return d.AppendBare(nil, before)
	}
	return d.AppendTo(nil, before)
}

var formNames = regexp.MustCompile(`^(?:(short|long)-(blocks|gaps)|last-(adaptive)|first-(block))$`)

// holdsItsName checks that a filter named after a method, or a form of the block method, is coded so (CODERS.md, sections 1
// and 3.1).
func (f frozen) holdsItsName(t *testing.T, b []byte) {
	t.Helper()
	name := formNames.FindStringSubmatch(f.Name)
	if name == nil {
		return
	}
	h, err := digest.Peek(b, digest.Limits{Profile: digest.AnyProfile})
	if err != nil {
		t.Fatal(err)
	}
	var dump strings.Builder
	digest.Dump(&dump, b)
	form, method := "gaps", "block"
	if 18*min(h.Ones, f.Bits-h.Ones) >= f.Bits {
		form = "blocks"
	}
	if name[2] == "" {
		form, method = "", name[3]+name[4]
	}
	if form != name[2] || form == "" && h.Ones != uint64(f.Last) || !regexp.MustCompile(` positions +`+method).MatchString(dump.String()) {
		t.Errorf("%s: %d of %d positions: form %s, in %q", f.Name, h.Ones, f.Bits, form, dump.String()[:500])
	}
}

// whole reads a filter, in pieces or not.
func (f frozen) whole(b []byte) (*digest.Filter, error) {
	return digest.DecodeFilter(b, digest.Limits{Seed: f.geometry().Seed, Profile: f.Profile})
}

// change reads a delta and its base, and applies it.
func (f frozen) change(b, base []byte) (*digest.Filter, error) {
	lim := digest.Limits{Seed: f.geometry().Seed, Profile: f.Profile}
	before, err := f.whole(base)
	if err != nil {
		return nil, err
	}
	if f.Kind == "bare" {
		_, target, err := digest.DecodeBare(b, before, f.Sequence, uint64(f.Last-f.First), lim)
		return target, err
	}
	d, err := digest.DecodeDelta(b, before, lim)
	if err != nil {
		return nil, err
	}
	return d.Apply(before)
}

// compare compares a decoded filter with a new one.
func (f frozen) compare(t *testing.T, got *digest.Filter) {
	t.Helper()
	v := got.Version()
	anew, err := digest.FilterOf(f.geometry(), v, f.keys)
	if err != nil {
		t.Fatal(err)
	}
	for i := f.First; i < f.Last; i += 1 + f.Last/1000 {
		if !got.MayContain(f.key(i)) {
			t.Fatalf("%s: object %d is not in it", f.Name, i)
		}
	}
	if v.Epoch != f.Epoch || v.Sequence != f.Sequence || fmt.Sprintf("%016x", v.State) != f.State || got.Keys() != uint64(f.Last-f.First) {
		t.Errorf("%s: version %v, %d keys", f.Name, v, got.Keys())
	}
	if got.Geometry() != f.geometry() {
		t.Errorf("%s: geometry %v", f.Name, got.Geometry())
	}
	if anew.Version().State != v.State || anew.Ones() != got.Ones() || f.Last < 100_000 && !slices.Equal(anew.AppendPositions(nil, 0, int(anew.Ones())), got.AppendPositions(nil, 0, int(got.Ones()))) {
		t.Errorf("%s: the positions differ from those of a new filter", f.Name)
	}
}
