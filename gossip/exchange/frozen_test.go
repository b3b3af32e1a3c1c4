package exchange

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/summarycache/summarycache/digest"
)

// testdata/frozen has messages that earlier programs wrote, in a directory for each release. They are
// never rewritten: all later programs must be able to read them (PROTOCOL.md, section 9). Messages without a
// digest are in vectors.json, which is not rewritten either.

var freeze = flag.String("freeze", "", "write testdata/frozen/`NAME`, which must not exist")

const frozenDir = "testdata/frozen"

// frozenAnswers are the frames with bodies, which vectors.json does not have.
const frozenAnswers = "answers.json"

// frozenSteps are the steps of publications.
const frozenSteps = "steps.json"

// A frozenAnswer is the frame that answers a get of a client that has Base, or nothing.
type frozenAnswer struct {
	Name  string
	Frame string // hexadecimal
	Base  string // the name of the snapshot before; "" = none
	Head  Head
	Keys  int // "object 0" … are in the digest
}

// A frozenStep is the datagram to a peer that has Base.
type frozenStep struct {
	Name     string
	Datagram string // hexadecimal
	Base     string // the name of the snapshot before
	Head     Head   // to which it leads
	Keys     int    // "object 0" … are in the digest
	Gone     int    // of them so many of the first are not
}

// origin is an engine that publishes twice.
func frozenOrigin() (*Engine, *digest.CountingFilter, time.Time) {
	now := time.Unix(1_700_000_000, 0)
	cfg := Config{Name: "origin", Incarnation: NewIncarnation(now, 1)}
	filter, err := digest.NewCountingFilter(digest.Geometry{Bits: 1 << 20, Hashes: 1}, 3)
	if err != nil {
		panic(err)
	}
	return New(cfg, now), filter, now
}

func frozenKey(i int) digest.Key { return digest.KeyOfString(0, fmt.Sprint("object ", i)) }

// freezeAnswers returns an engine's answers of each kind: snapshot, delta, same and unknown.
func freezeAnswers(t *testing.T) (all []frozenAnswer, steps []frozenStep) {
	e, filter, now := frozenOrigin()
	add := func(name, base string, get Get, keys int) Head {
		frame := e.HandleGet("reader", get).AppendTo(nil)
		a := frozenAnswer{Name: name, Frame: fmt.Sprintf("%x", frame), Base: base, Keys: keys}
		typ, n, err := DecodeFrameHeader([FrameHeader]byte(frame), 1<<20)
		if err != nil || n != len(frame)-FrameHeader {
			t.Fatalf("%s: %v", name, err)
		}
		if typ != FrameUnknown {
			in := newReader("", frame[FrameHeader:])
			a.Head = in.head()
		}
		all = append(all, a)
		return a.Head
	}
	get := Get{Origin: IDOf("origin"), Limit: 1 << 20}
	for i := range 200 {
		filter.Add(frozenKey(i))
	}
	e.Publish(now, filter.Advance(), nil)
	first := add("snapshot", "", get, 200)
	for i := 200; i < 230; i++ {
		filter.Add(frozenKey(i))
	}
	f, d := filter.AdvanceDelta()
	e.Publish(now, f, d)
	get.Have, get.State = first.Version, first.State
	last := add("delta", "snapshot", get, 230)
	step := func(name, base string, keys, gone int) {
		if len(e.step.data) == 0 {
			t.Fatalf("%s: no datagram", name)
		}
		steps = append(steps, frozenStep{name, fmt.Sprintf("%x", e.step.data), base, e.self, keys, gone})
	}
	step("step", "snapshot", 230, 0)
	get.Have, get.State = last.Version, last.State
	add("same", "", get, 0)
	add("unknown", "", Get{Origin: IDOf("nobody"), Limit: 1 << 20}, 0)
	for i := range 10 {
		filter.Remove(frozenKey(i))
		filter.Add(frozenKey(230 + i))
	}
	f, d = filter.AdvanceDelta()
	e.Publish(now, f, d)
	step("step that clears positions", "step", 240, 10)
	return all, steps
}

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
		t.Fatalf("frozen files are not rewritten: %v", err)
	}
	answers, steps := freezeAnswers(t)
	for name, b := range map[string][]byte{frozenAnswers: indented(t, answers), frozenSteps: indented(t, steps)} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func indented(t *testing.T, v any) []byte {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return append(b, '\n')
}

// The present code reads the messages of all earlier programs, with the same values, and writes those of the last one.
func TestFrozen(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join(frozenDir, "*"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("nothing is frozen: %v", err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			var answers []frozenAnswer
			thaw(t, filepath.Join(dir, frozenAnswers), &answers)
			filters := readFrozenAnswers(t, answers)
			var steps []frozenStep
			thaw(t, filepath.Join(dir, frozenSteps), &steps)
			readFrozenSteps(t, steps, filters)
			if dir == dirs[len(dirs)-1] {
				writtenToday, stepsToday := freezeAnswers(t)
				if !reflect.DeepEqual(writtenToday, answers) || !reflect.DeepEqual(stepsToday, steps) {
					t.Errorf("today's program writes %s and %s, not what is frozen", indented(t, writtenToday), indented(t, stepsToday))
				}
			}
		})
	}
}

func thaw(t *testing.T, path string, into any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func readFrozenAnswers(t *testing.T, answers []frozenAnswer) map[string]*digest.Filter {
	filters := map[string]*digest.Filter{}
	for _, a := range answers {
		frame := unhex(t, a.Frame)
		typ, n, err := DecodeFrameHeader([FrameHeader]byte(frame), 1<<20)
		if err != nil || n != len(frame)-FrameHeader {
			t.Errorf("%s: frame of %d bytes for %d, %v", a.Name, n, len(frame)-FrameHeader, err)
			continue
		}
		f := Fetch{Get: Get{Origin: a.Head.Origin}, Base: filters[a.Base]}
		r := DecodeAnswer(f, typ, frame[FrameHeader:], digest.Limits{})
		if r.Err != nil || r.Head != a.Head {
			t.Errorf("%s: head %v, %v, want %v", a.Name, r.Head, r.Err, a.Head)
			continue
		}
		if a.Keys == 0 {
			continue
		}
		for i := range a.Keys {
			if !r.Filter.MayContain(frozenKey(i)) {
				t.Fatalf("%s: object %d is not in it", a.Name, i)
			}
		}
		filters[a.Name] = r.Filter
	}
	if len(answers) != 4 || len(filters) != 2 {
		t.Errorf("%d answers, %d filters", len(answers), len(filters))
	}
	return filters
}

func readFrozenSteps(t *testing.T, steps []frozenStep, filters map[string]*digest.Filter) {
	for _, a := range steps {
		s, err := DecodeStep(unhex(t, a.Datagram))
		from := a.Head.Version.Sequence - s.Step
		if err != nil || s.Origin != a.Head.Origin.tag() || s.From != uint8(from) {
			t.Errorf("%s: %+v, %v, want one that leads to %v", a.Name, s, err, a.Head)
			continue
		}
		base := filters[a.Base]
		if base == nil || base.Version().Sequence != from {
			t.Errorf("%s: starts from %d, and %q is not that", a.Name, from, a.Base)
			continue
		}
		have := a.Head.Version
		have.Sequence = from
		r := DecodeChange(Fetch{Get: Get{Origin: a.Head.Origin, Have: have}, Base: base, Step: &s}, digest.Limits{})
		if r.Err != nil || r.Head != a.Head {
			t.Errorf("%s: head %v, %v, want %v", a.Name, r.Head, r.Err, a.Head)
			continue
		}
		for i := range a.Keys {
			if r.Filter.MayContain(frozenKey(i)) != (i >= a.Gone) {
				t.Fatalf("%s: object %d of %d, the first %d of them removed", a.Name, i, a.Keys, a.Gone)
			}
		}
		filters[a.Name] = r.Filter
	}
	if len(steps) != 2 {
		t.Errorf("%d steps", len(steps))
	}
}
