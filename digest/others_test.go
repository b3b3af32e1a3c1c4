package digest

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"math/bits"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var others = flag.Bool("others", false, "fail without Python 3 or a C compiler, and give the implementations in these languages all there is")

// An other is another implementation of the format: a process that answers lines as described
// in IMPLEMENTING.md.
type other struct {
	testing.TB
	lines  io.Writer
	reply  *bufio.Reader
	slow   bool // gets no long inputs
	python bool // gets fewer random inputs
	reader bool // only reads
}

// Three other implementations, which were written from the documents and not from this package,
// read all of these messages and write the same bytes.
func TestOtherImplementations(t *testing.T) {
	if testing.Short() {
		t.Skip("processes that compute")
	}
	t.Run("python", func(t *testing.T) {
		python := look(t, "python3")
		o := process(t, !*others, python, "-B", "testdata/python/format.py")
		o.python = true
		o.agrees()
	})
	t.Run("c", func(t *testing.T) {
		program := filepath.Join(t.TempDir(), "format")
		build := exec.Command(look(t, "gcc"), "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, "testdata/c/format.c")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		o := process(t, !*others, program)
		o.agrees()
	})
	t.Run("javascript", func(t *testing.T) {
		o := process(t, !*others, look(t, "node"), "testdata/js/lines.mjs")
		o.python, o.reader = true, true
		o.agrees()
	})
}

func look(t *testing.T, name string) string {
	path, err := exec.LookPath(name)
	if err != nil && *others {
		t.Fatal(err)
	} else if err != nil {
		t.Skipf("%s is not here, so that implementation is not run", name)
	}
	return path
}

func process(t *testing.T, slow bool, command string, args ...string) *other {
	cmd := exec.Command(command, args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	return &other{TB: t, lines: in, reply: bufio.NewReaderSize(out, 1<<20), slow: slow}
}

// ask sends the process a line, and returns its answer.
func (o *other) ask(words ...any) string {
	o.Helper()
	if _, err := fmt.Fprintln(o.lines, words...); err != nil {
		o.Fatal(err)
	}
	line, err := o.reply.ReadString('\n')
	if err != nil {
		o.Fatalf("%.200q: %v", fmt.Sprint(words...), err)
	}
	return strings.TrimSuffix(line, "\n")
}

// wants checks the answer to a line.
func (o *other) wants(want string, words ...any) {
	o.Helper()
	if o.reader && slices.Contains([]any{"seed", "write", "diff", "code"}, words[0]) {
		return
	}
	if got := o.ask(words...); got != want {
		o.Errorf("%.300s: %.300s, want %.300s", fmt.Sprintln(words...), got, want)
	}
}

// comma formats numbers for a line.
func comma(numbers []uint64) string {
	if len(numbers) == 0 {
		return "-"
	}
	b := []byte{}
	for _, n := range numbers {
		b = fmt.Appendf(b, ",%d", n)
	}
	return string(b[1:])
}

func hexOf(b []byte) string {
	if len(b) == 0 {
		return "-"
	}
	return hex.EncodeToString(b)
}

// described is the expected answer for a filter of that kind. extra is the span of pieces.
func described(kind string, f *Filter, extra uint64, positions []uint64) string {
	g, v := f.geometry, f.version
	return fmt.Sprint(kind, " ", doubleHashing, " ", g.Hashes, " ", uint8(g.Profile), " ", seedTag(g.Seed), " ", g.Bits, " ",
		v.Epoch, " ", v.Sequence, " ", v.State, " ", f.keys, " ", extra, " ", comma(positions))
}

// both has it read a message, and write it again.
func (o *other) both(line string, message []byte) {
	o.Helper()
	o.wants(line, "read", hexOf(message))
	o.wants(hexOf(message), "write", line)
}

func (o *other) agrees() {
	v := loadVectors(o)
	for _, s := range v.Seeds {
		o.wants(fmt.Sprint(number(o, s.Seed), number(o, s.Tag)), "seed", hexOf([]byte(s.Secret)))
	}
	for _, k := range v.Keys {
		o.wants(fmt.Sprint(number(o, k.Key)), "key", number(o, k.Seed), hexOf([]byte(k.Identity)))
	}
	for _, p := range v.Positions {
		o.wants(comma(p.Positions), "positions", p.Bits, p.Hashes, number(o, p.Key))
	}
	filters := map[string]*Filter{}
	for _, f := range v.Filters {
		c := f.counters(o)
		filters[f.Name] = c.Current()
		o.both(described("filter", c.Current(), 0, f.Positions), unhex(o, f.Hex))
	}
	for _, p := range v.Pieces {
		f := filters[p.Filter]
		o.both(described("pieces", f, p.Span, f.list()), unhex(o, p.Hex))
		asked := f.list()
		for at := uint64(0); at < f.geometry.Bits; at += f.geometry.Bits/50 + 1 {
			asked = append(asked, at)
		}
		for _, at := range asked {
			o.wants(map[bool]string{true: "1", false: "0"}[slices.Contains(f.list(), at)], "ask", p.Hex, at)
		}
	}
	for _, d := range v.Deltas {
		o.deltas(filters[d.Base], filters[d.Target])
	}
	for _, e := range v.Extended {
		f := filters[e.Filter]
		switch b := unhex(o, e.Hex); Kind(b[4]) {
		case KindDelta:
			o.wants(described("delta", f, 0, f.list()), "apply", e.Hex, hexOf(filters[e.Base].AppendTo(nil)))
		case KindPieces:
			o.wants("1", "ask", e.Hex, f.list()[0])
		default:
			o.wants(described("filter", f, 0, f.list()), "read", e.Hex)
		}
	}
	for _, bad := range v.Invalid {
		words := []any{"read", hexOf(unhex(o, bad.Hex))}
		if bad.Base != "" {
			words = []any{"apply", words[1], hexOf(filters[bad.Base].AppendTo(nil))}
		} else if len(bad.Hex) > 10 && Kind(unhex(o, bad.Hex)[4]) == KindDelta {
			continue // without a base, only the base is wrong
		}
		o.wants(fmt.Sprintf("refused %s %d %s", bad.Error, bad.Offset, bad.Field), words...)
	}
	o.sets()
	o.frozen()
	o.random()
}

// deltas has it read and write both forms of the delta between two filters.
func (o *other) deltas(base, target *Filter) {
	o.Helper()
	d, err := Diff(base, target)
	if err != nil {
		o.Fatal(err)
	}
	from, to := hexOf(base.AppendTo(nil)), hexOf(target.AppendTo(nil))
	message := hexOf(encode(o, d, base))
	o.wants(described("delta", target, 0, target.list()), "apply", message, from)
	o.wants(message, "diff", "delta", from, to)
	bare, err := d.AppendBare(nil, base)
	if err != nil {
		o.Fatal(err)
	}
	o.wants(comma(target.list()), "bare", hexOf(bare), from)
	o.wants(hexOf(bare), "diff", "bare", from, to)
}

// sets has it code and decode the sets of package arith.
func (o *other) sets() {
	var v struct {
		Valid []struct {
			Name      string
			Method, M uint64
			Positions []uint64
			Drawn     uint64
			Code      string
			SHA256    string
		}
		Invalid []struct {
			Name         string
			Method, M, X uint64
			Code, Error  string
		}
	}
	b, err := os.ReadFile("../arith/testdata/sets.json")
	if err != nil {
		o.Fatal(err)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		o.Fatal(err)
	}
	for _, c := range v.Valid {
		if o.slow && c.SHA256 != "" && c.Drawn > 10_000 {
			continue
		}
		drawn := map[uint64]bool{}
		for state := uint64(golden); uint64(len(drawn)) < c.Drawn; state += golden { // as IMPLEMENTING.md says
			p, _ := bits.Mul64(mix(state), c.M)
			drawn[p] = true
		}
		if len(drawn) > 0 {
			c.Positions = slices.Sorted(maps.Keys(drawn))
		}
		code := hexOf(unhex(o, c.Code))
		if c.SHA256 != "" && o.reader {
			continue
		} else if c.SHA256 != "" {
			code = o.ask("code", c.Method, c.M, comma(c.Positions))
			if sum := sha256.Sum256(unhex(o, code)); hex.EncodeToString(sum[:]) != c.SHA256 {
				o.Errorf("%s: codes to %d bytes of another hash", c.Name, len(code)/2)
			}
		} else {
			o.wants(code, "code", c.Method, c.M, comma(c.Positions))
		}
		o.wants(comma(c.Positions), "decode", c.Method, c.M, len(c.Positions), code)
	}
	for _, c := range v.Invalid {
		o.wants("refused "+c.Error+" 0 code", "decode", c.Method, c.M, c.X, hexOf(unhex(o, c.Code)))
	}
}

// frozen has it read all frozen messages, and write them again.
func (o *other) frozen() {
	dirs, err := filepath.Glob("testdata/frozen/*")
	if err != nil || len(dirs) == 0 {
		o.Fatalf("%d directories are frozen: %v", len(dirs), err)
	}
	for _, dir := range dirs {
		b, err := os.ReadFile(filepath.Join(dir, "frozen.json"))
		if err != nil {
			o.Fatal(err)
		}
		var all []frozenMessage
		if err := json.Unmarshal(b, &all); err != nil {
			o.Fatal(err)
		}
		message := func(name string) []byte {
			b, err := os.ReadFile(filepath.Join(dir, name+".bin"))
			if err != nil {
				o.Fatal(err)
			}
			return b
		}
		for _, f := range all {
			o.frozenMessage(f, message)
		}
	}
}

// frozenMessage is a message's entry in frozen.json.
type frozenMessage struct {
	Name, Kind      string
	Bits            uint64
	Hashes          int
	Profile         Profile
	Secret          string
	First, Last     int
	Epoch, Sequence uint64
	State, Base     string
	SHA256          string
}

// hashed compares what it wrote with the stored hash of a message, and has it read that.
func (o *other) hashed(f frozenMessage, line, written, read string, base ...any) {
	o.Helper()
	if sum := sha256.Sum256(unhex(o, written)); hex.EncodeToString(sum[:]) != f.SHA256 {
		o.Errorf("%s: writes %.200s", f.Name, written)
	}
	o.wants(line, append([]any{read, written}, base...)...)
}

func (o *other) frozenMessage(f frozenMessage, message func(string) []byte) {
	var b []byte
	if f.SHA256 == "" {
		b = message(f.Name)
	}
	if o.slow && (b == nil || len(b) > 4_000) || b == nil && o.reader {
		return
	}
	g := Geometry{Bits: f.Bits, Hashes: f.Hashes, Profile: f.Profile, Seed: SeedFrom([]byte(f.Secret))}
	keys := make([]Key, 0, f.Last-f.First)
	for i := f.First; i < f.Last; i++ {
		keys = append(keys, KeyOfString(g.Seed, fmt.Sprint("object ", i)))
	}
	want, err := FilterOf(g, Version{Epoch: f.Epoch, Sequence: f.Sequence}, slices.Values(keys))
	if err != nil {
		o.Fatal(err)
	}
	if f.State != fmt.Sprintf("%016x", want.version.State) {
		o.Errorf("%s: state %s", f.Name, f.State)
	}
	line := described(f.Kind, want, 0, want.list())
	switch {
	case f.SHA256 != "" && f.Kind == "pieces": // one piece: the count of positions stands for the span
		line = described(f.Kind, want, f.Bits, want.list())
		o.hashed(f, line, o.ask("write", line), "read")
	case f.SHA256 != "":
		base := hexOf(message(f.Base))
		got := o.ask("diff", f.Kind, base, hexOf(want.AppendTo(nil)))
		if f.Kind == "bare" {
			o.hashed(f, comma(want.list()), got, "bare", base)
		} else {
			o.hashed(f, line, got, "apply", base)
		}
	case f.Kind == "pieces":
		got := o.ask("read", hexOf(b))
		span, _ := strconv.ParseUint(strings.Fields(got + " - - - - - - - - - - -")[10], 10, 64) // the writer's choice
		line = described(f.Kind, want, span, want.list())
		if got != line {
			o.Errorf("%s: %.300s, want %.300s", f.Name, got, line)
		}
		o.wants(hexOf(b), "write", line)
	case f.Base == "":
		o.both(line, b)
	default:
		base := message(f.Base)
		what := map[string]string{"delta": "apply", "bare": "bare"}[f.Kind]
		if what == "bare" {
			line = comma(want.list())
		}
		o.wants(line, what, hexOf(b), hexOf(base))
		o.wants(hexOf(b), "diff", f.Kind, hexOf(base), hexOf(want.AppendTo(nil)))
	}
}

// random compares them with this package on random inputs: filters at the densities where
// codings change, and messages with one changed byte, for which both must report the same error
// at the same place.
func (o *other) random() {
	rng := rand.New(rand.NewPCG(1, 22))
	keysOf := func(n int) (keys []Key) {
		for range n {
			keys = append(keys, Key(rng.Uint64()))
		}
		return keys
	}
	filter := func(bits uint64, hashes int, keys []Key) *Filter {
		f, err := FilterOf(Geometry{Bits: bits, Hashes: hashes}, Version{Epoch: 1, Sequence: 1}, slices.Values(keys))
		if err != nil {
			o.Fatal(err)
		}
		return f
	}
	rounds, most := 10, 700
	if *others && !o.python {
		rounds, most = 40, 7000
	}
	for range rounds {
		n := 1 + rng.IntN(most)
		bits, hashes := uint64(float64(n)*math.Exp2(rng.Float64()*9-2))+1, 1+rng.IntN(4)
		keys := keysOf(n)
		f := filter(bits, hashes, keys)
		o.both(described("filter", f, 0, f.list()), f.AppendTo(nil))
		after := filter(bits, hashes, append(keysOf(n/30+1), keys[n/40:]...))
		after.version.Sequence++
		o.deltas(f, after)
		span := bits/uint64(1+rng.IntN(9)) + 1
		o.both(described("pieces", f, min(span, bits), f.list()), f.appendSpans(nil, min(span, bits)))
	}
	f := filter(300, 3, keysOf(200))
	small := filter(300, 1, keysOf(9))
	for _, message := range [][]byte{f.AppendTo(nil), f.appendSpans(nil, 100), small.AppendTo(nil), small.appendSpans(nil, 90)} {
		for range 150 {
			b := slices.Clone(message)
			at := 3 + rng.IntN(len(b)-7)
			b[at] ^= 1 << rng.IntN(8)
			b = reseal(b)
			_, err := DecodeFilter(b, Limits{Profile: AnyProfile})
			if err == nil || Kind(b[4]) == KindDelta {
				continue
			}
			var format *FormatError
			errors.As(err, &format)
			for name, sentinel := range sentinels {
				if errors.Is(err, sentinel) {
					o.wants(fmt.Sprintf("refused %s %d %s", name, format.Offset, format.Field), "read", hexOf(b))
				}
			}
		}
	}
}

// appendSpans appends the encoding in pieces of span positions each.
func (f *Filter) appendSpans(dst []byte, span uint64) []byte {
	bodies, longest := f.inSpans(span)
	return f.appendBodies(dst, span, bodies, longest)
}
