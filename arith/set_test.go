package arith

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// draw returns x of m positions; all sets are equally likely.
func draw(rng *rand.Rand, m, x uint64) []uint64 {
	if x > m/2 {
		return complement(m, draw(rng, m, m-x))
	}
	seen := make(map[uint64]bool, x)
	for uint64(len(seen)) < x {
		seen[rng.Uint64N(m)] = true
	}
	positions := make([]uint64, 0, x)
	for p := range seen {
		positions = append(positions, p)
	}
	slices.Sort(positions)
	return positions
}

func bitmapOf(m uint64, positions []uint64) []uint64 {
	words := make([]uint64, wordsFor(m))
	for _, p := range positions {
		words[p/64] |= 1 << (p % 64)
	}
	return words
}

// sets returns sets of every form and at every edge, by name.
func sets() map[string]struct {
	m         uint64
	positions []uint64
} {
	rng := rand.New(rand.NewPCG(5, 5))
	all := map[string]struct {
		m         uint64
		positions []uint64
	}{}
	add := func(name string, m uint64, positions []uint64) {
		all[name] = struct {
			m         uint64
			positions []uint64
		}{m, positions}
	}
	for _, m := range []uint64{0, 1, 2, 7, 63, 64, 65, 128, 1000, 4099, 1 << 14} {
		for _, x := range []uint64{0, 1, 2, m / 100, m / 17, m / 9, m / 8, m / 7, m / 3, m / 2, m - m/3, m - m/17, m - 1, m} {
			if x <= m {
				add(fmt.Sprintf("m=%d/x=%d", m, x), m, draw(rng, m, x))
			}
		}
	}
	for _, m := range []uint64{1 << 20, 1<<33 + 5, MaxUniverse} {
		for _, x := range []uint64{1, 2, 100, 3000} {
			add(fmt.Sprintf("m=%d/x=%d", m, x), m, draw(rng, m, x))
		}
		add(fmt.Sprintf("m=%d/ends", m), m, []uint64{0, 1, m - 2, m - 1})
	}
	run := func(from, to uint64) (p []uint64) {
		for ; from < to; from++ {
			p = append(p, from)
		}
		return p
	}
	add("run at the start", 1<<13, run(0, 1<<12))
	add("run at the end", 1<<13, run(1<<12, 1<<13))
	add("short run at the end", 1<<20, run(1<<20-1000, 1<<20))
	add("long run, sparse rest", 1<<13, append(run(0, 1<<13-500), 1<<13-77, 1<<13-3))
	return all
}

var methods = []Method{Adaptive, Block}

// slowSet is AppendSet by the slow coders.
func slowSet(method Method, m uint64, positions []uint64) []byte {
	if method == Block {
		return slowBlock(m, positions)
	}
	return slowAdaptive(m, positions)
}

func TestSetRoundTrip(t *testing.T) {
	for _, method := range methods {
		t.Run(method.String(), func(t *testing.T) { testSetRoundTrip(t, method) })
	}
}

func testSetRoundTrip(t *testing.T, method Method) {
	for name, c := range sets() {
		x := uint64(len(c.positions))
		code := AppendSet([]byte("ab"), method, c.m, c.positions)
		if !bytes.HasPrefix(code, []byte("ab")) {
			t.Fatalf("%s: AppendSet does not append", name)
		}
		code = code[2:]
		if slow := slowSet(method, c.m, c.positions); c.m <= 1<<14 && !bytes.Equal(code, slow) {
			t.Errorf("%s: AppendSet = %x, the slow coder says %x", name, code, slow)
		}
		got, err := decodeSet([]uint64{42}, method, code, c.m, x)
		if err != nil || got[0] != 42 || !slices.Equal(got[1:], c.positions) {
			t.Errorf("%s: DecodeSet = %d positions, %v", name, len(got)-1, err)
		}
		if c.m > 1<<20 {
			continue
		}
		words := bitmapOf(c.m, c.positions)
		if again := AppendBitmap(nil, method, c.m, words); !bytes.Equal(again, code) {
			t.Errorf("%s: AppendBitmap = %x, AppendSet = %x", name, again, code)
		}
		out := make([]uint64, len(words))
		for i := range out {
			out[i] = 0x5555555555555555
		}
		if err := DecodeBitmap(out, method, code, c.m, x); err != nil || !slices.Equal(out, words) {
			t.Errorf("%s: DecodeBitmap: %v, equal %v", name, err, slices.Equal(out, words))
		}
	}
}

func TestSetSize(t *testing.T) {
	if testing.Short() {
		t.Skip("measures sizes in one goroutine")
	}
	rng := rand.New(rand.NewPCG(6, 6))
	for _, c := range []struct{ m, x uint64 }{
		{100, 3}, {80_000, 37_178}, {140_000, 18_640}, {126_000, 18_513}, {280_000, 37_284},
		{480_000, 29_077}, {920_000, 9_946}, {920_000, 910_054}, {1 << 30, 10_000}, {MaxUniverse, 50_000},
	} {
		code := AppendSet(nil, Adaptive, c.m, draw(rng, c.m, c.x))
		if limit := limitBits(c.m, c.x) / 8; float64(len(code)) > limit+3.5 {
			t.Errorf("m=%d x=%d: %d bytes, %.1f over the limit", c.m, c.x, len(code), float64(len(code))-limit)
		}
	}
}

func TestSetDamaged(t *testing.T) {
	if testing.Short() {
		t.Skip("decodes thousands of damaged codes in one goroutine")
	}
	for _, method := range methods {
		t.Run(method.String(), func(t *testing.T) { testSetDamaged(t, method) })
	}
}

func testSetDamaged(t *testing.T, method Method) {
	for name, c := range sets() {
		if c.m > 4099 {
			continue
		}
		x := uint64(len(c.positions))
		code := AppendSet(nil, method, c.m, c.positions)
		words := make([]uint64, wordsFor(c.m))
		check := func(what string, src []byte, x uint64) {
			t.Helper()
			got, err := decodeSet(nil, method, src, c.m, x)
			errBitmap := DecodeBitmap(words, method, src, c.m, x)
			if (err == nil) != (errBitmap == nil) {
				t.Fatalf("%s, %s: DecodeSet: %v, DecodeBitmap: %v", name, what, err, errBitmap)
			}
			if err == nil {
				if again := AppendSet(nil, method, c.m, got); !bytes.Equal(again, src) {
					t.Fatalf("%s, %s: accepts %x, the set's code is %x", name, what, src, again)
				}
			} else if len(got) != 0 || !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrTruncated) {
				t.Fatalf("%s, %s: DecodeSet = %d positions, %v", name, what, len(got), err)
			}
		}
		check("one byte more", append(slices.Clone(code), 0), x)
		for n := 0; n < len(code); n += 1 + len(code)/40 {
			check("cut", code[:n], x)
			for bit := range 8 {
				flipped := slices.Clone(code)
				flipped[n] ^= 1 << bit
				check("flipped", flipped, x)
			}
		}
		for _, wrong := range []uint64{0, x / 2, x + 1, c.m - x, c.m + 1} {
			check("wrong count", code, wrong)
		}
	}
}

// TestSetTruncated: the length of a code follows roughly from m and x, so it is noticed if much
// of it is missing, whatever the bytes are.
func TestSetTruncated(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for _, c := range []struct{ m, x uint64 }{{10_000, 3000}, {100_000, 5000}, {100_000, 1000}, {1 << 35, 1000}} {
		for _, method := range methods {
			code := AppendSet(nil, method, c.m, draw(rng, c.m, c.x))
			for n := 0; n < len(code)*9/10; n += 7 {
				if _, err := decodeSet(nil, method, code[:n], c.m, c.x); !errors.Is(err, ErrTruncated) {
					t.Errorf("m=%d x=%d: DecodeSet of %d bytes of %d = %v, want %v", c.m, c.x, n, len(code), err, ErrTruncated)
				}
			}
		}
	}
}

func TestSetBroken(t *testing.T) {
	for name, call := range map[string]func(){
		"descending":     func() { AppendSet(nil, Adaptive, 10, []uint64{3, 2}) },
		"twice":          func() { AppendSet(nil, Adaptive, 10, []uint64{3, 3}) },
		"beyond m":       func() { AppendSet(nil, Adaptive, 10, []uint64{3, 10}) },
		"universe":       func() { AppendSet(nil, Adaptive, MaxUniverse+1, nil) },
		"method":         func() { AppendSet(nil, Method(200), 10, nil) },
		"few words":      func() { AppendBitmap(nil, Adaptive, 65, make([]uint64, 1)) },
		"many words":     func() { AppendBitmap(nil, Adaptive, 64, make([]uint64, 2)) },
		"stray bits":     func() { AppendBitmap(nil, Adaptive, 63, []uint64{1 << 63}) },
		"decode words":   func() { _ = DecodeBitmap(make([]uint64, 1), Adaptive, nil, 65, 0) },
		"decode method":  func() { _, _ = decodeSet(nil, Method(200), nil, 65, 0) },
		"bitmap unknown": func() { _ = DecodeBitmap(make([]uint64, 2), Method(200), nil, 65, 0) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			call()
		}()
	}
	for _, c := range []struct{ m, x uint64 }{{MaxUniverse + 1, 5}, {10, 11}, {1 << 63, 1 << 63}} {
		if _, err := decodeSet(nil, Adaptive, nil, c.m, c.x); !errors.Is(err, ErrCorrupt) {
			t.Errorf("DecodeSet with m=%d, x=%d = %v, want %v", c.m, c.x, err, ErrCorrupt)
		}
	}
}

// decodeSet appends the set to dst, which it returns unchanged if there is an error.
func decodeSet(dst []uint64, method Method, src []byte, m, x uint64) ([]uint64, error) {
	out := dst
	if err := DecodeSet(method, src, m, x, func(some []uint64) { out = append(out, some...) }); err != nil {
		return dst, err
	}
	return out, nil
}

func TestSetAllocations(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	for _, c := range []struct{ m, x uint64 }{{10_000, 3000}, {100_000, 5000}, {100_000, 1000}, {100_000, 99_000}} {
		for _, method := range []Method{Adaptive, Block} {
			positions := draw(rng, c.m, c.x)
			words := bitmapOf(c.m, positions)
			code := AppendSet(nil, method, c.m, positions)
			ignore := func([]uint64) {}
			for name, call := range map[string]func(){
				"AppendSet":    func() { code = AppendSet(code[:0], method, c.m, positions) },
				"AppendBitmap": func() { code = AppendBitmap(code[:0], method, c.m, words) },
				"DecodeSet":    func() { _ = DecodeSet(method, code, c.m, c.x, ignore) },
				"DecodeBitmap": func() { _ = DecodeBitmap(words, method, code, c.m, c.x) },
			} {
				want := 0.
				switch gaps := method == Block && planBlocks(c.m, c.x).gaps; {
				case name == "DecodeSet":
					want = 1 // the slice that it passes to take
				case name == "DecodeBitmap" && (gaps || method == Adaptive):
					want = 2 // and take
				case name == "AppendBitmap" && gaps, name == "AppendSet" && gaps && c.x > c.m/2:
					want = 4 // the list of members, and the loop that fills it
				}
				if n := testing.AllocsPerRun(5, call); n != want {
					t.Errorf("m=%d x=%d, %v: %s allocates %v times, want %v", c.m, c.x, method, name, n, want)
				}
			}
		}
	}
}
