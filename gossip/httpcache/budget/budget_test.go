package budget

import (
	"math"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"testing/fstest"
)

const mb = 1 << 20

// TestReserves checks that an account gets its reserve whatever others hold, and more only of what is
// nobody's reserve.
func TestReserves(t *testing.T) {
	b := New(176 * mb) // of which the accounts may hold 102 MiB
	a, c := b.Open("a", 40*mb, 0), b.Open("c", 20*mb, 50*mb)
	steps := []struct {
		what string
		of   *Account
		n    int64
		want bool
	}{
		{"all but the other's reserve", a, 82 * mb, true},
		{"a byte of the other's reserve", a, 1, false},
		{"the other's reserve", c, 20 * mb, true},
		{"a byte more than there is", c, 1, false},
		{"give back what is common", a, -42 * mb, true},
		{"more than the account's bound", c, 30*mb + 1, false},
		{"the account's bound", c, 30 * mb, true},
		{"what is left", a, 12 * mb, true},
		{"more", a, 1, false},
	}
	for _, s := range steps {
		if s.n < 0 {
			s.of.Give(-s.n)
			continue
		}
		room := s.of.Room()
		if got := s.of.Take(s.n); got != s.want || got != (s.n <= room) {
			t.Errorf("%s: Take(%d) = %v, want %v; room was %d", s.what, s.n, got, s.want, room)
		}
	}
	if got := b.Held(); got != 102*mb || got != b.Total() {
		t.Errorf("Held() = %d, Total() = %d, want %d", got, b.Total(), 102*mb)
	}
	want := []Usage{{"a", 52 * mb, 82 * mb, 40 * mb, 2}, {"c", 50 * mb, 50 * mb, 20 * mb, 2}}
	if got := b.Usage(); !slices.Equal(got, want) {
		t.Errorf("Usage() = %+v, want %+v", got, want)
	}
}

// TestSmallBudget checks that reserves never exceed the budget, and that the nil account grants all.
func TestSmallBudget(t *testing.T) {
	b := New(8 * mb)
	a, c := b.Open("a", 64*mb, 0), b.Open("c", 64*mb, 0)
	if !a.Take(2*mb) || a.Take(1) || c.Take(1) || c.Room() != 0 {
		t.Errorf("of 2 MiB: %+v", b.Usage())
	}
	a.Must(5 * mb)
	a.Give(7 * mb)
	if !a.Take(2*mb) || c.Take(1) {
		t.Errorf("after giving back: %+v", b.Usage())
	}
	var none *Account
	if none.Give(5); !none.Take(math.MaxInt64) || none.Held() != 0 || none.Room() != math.MaxInt64 {
		t.Error("the nil account refuses")
	}
}

// TestYield checks that an account gives back what it can do without where another is short, but not
// for its own sake, nor where the other may hold no more.
func TestYield(t *testing.T) {
	b := New(176 * mb)
	spare, a, c := b.Open("spare", 10*mb, 0), b.Open("a", 0, 0), b.Open("c", 0, 5*mb)
	asked := 0
	spare.OnShortage(func(n int64) { asked++; spare.Give(min(n, spare.Held()-10*mb)) })
	if !spare.Take(102*mb) || spare.Take(1) || asked != 0 {
		t.Fatalf("%+v, asked %d times", b.Usage(), asked)
	}
	if !a.Take(40*mb) || asked != 1 || spare.Held() != 62*mb {
		t.Errorf("%+v, asked %d times", b.Usage(), asked)
	}
	if c.Take(6*mb) || asked != 1 {
		t.Errorf("asked for more than an account may hold")
	}
	if a.Take(60*mb) || asked != 2 || spare.Held() != 10*mb || !a.Take(52*mb) || a.Take(1) || asked != 2 {
		t.Errorf("%+v, asked %d times", b.Usage(), asked)
	}
}

// TestConcurrent checks that takers at the same time never hold more than the budget, and that
// nothing is lost of it.
func TestConcurrent(t *testing.T) {
	b := New(64 * mb)
	accounts := []*Account{b.Open("a", 8*mb, 0), b.Open("b", 4*mb, 0), b.Open("c", 0, 16*mb)}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			a := accounts[i%len(accounts)]
			for k := range 2000 {
				n := int64(1+(i*7919+k*104729)%7) * mb
				if a.Take(n) {
					if common, open := b.common.Load(), b.open.Load(); common-7*8*mb > open {
						t.Errorf("%d of %d common bytes are taken", common, open)
					}
					a.Give(n)
				}
			}
		})
	}
	all.Wait()
	if b.Held() != 0 || b.common.Load() != 0 {
		t.Errorf("at the end %d bytes are held, %d of them common", b.Held(), b.common.Load())
	}
}

// TestContainer checks the limits of both versions of control groups.
func TestContainer(t *testing.T) {
	const v2, v1 = "sys/fs/cgroup/", "sys/fs/cgroup/memory/"
	for name, test := range map[string]struct {
		own   string
		files map[string]string
		want  int64
	}{
		"not Linux":         {"", nil, math.MaxInt64},
		"v2":                {"0::/a/b\n", map[string]string{v2 + "a/b/memory.max": "268435456\n"}, 256 * mb},
		"v2, no limit":      {"0::/a/b\n", map[string]string{v2 + "a/b/memory.max": "max\n"}, math.MaxInt64},
		"v2, group above":   {"0::/a/b\n", map[string]string{v2 + "a/b/memory.max": "max\n", v2 + "a/memory.max": "5\n"}, 5},
		"v2, path outside":  {"0::/docker/1\n", map[string]string{v2 + "memory.max": "7\n"}, 7},
		"v2, path above":    {"0::/../..\n", map[string]string{v2 + "memory.max": "7\n"}, 7},
		"v1":                {"4:memory:/x\n0::/\n", map[string]string{v1 + "x/memory.limit_in_bytes": "9\n"}, 9},
		"v1, no limit":      {"4:cpu,memory:/x\n", map[string]string{v1 + "x/memory.limit_in_bytes": "9223372036854771712\n"}, 9223372036854771712},
		"v1, path outside":  {"4:cpu,memory:/docker/1\n", map[string]string{v1 + "memory.limit_in_bytes": "9\n"}, 9},
		"v1, other groups":  {"4:cpu:/x\n", map[string]string{v1 + "x/memory.limit_in_bytes": "9\n"}, math.MaxInt64},
		"both":              {"4:memory:/x\n0::/y\n", map[string]string{v1 + "x/memory.limit_in_bytes": "9\n", v2 + "y/memory.max": "8\n"}, 8},
		"not a number":      {"0::/a\n", map[string]string{v2 + "a/memory.max": "x\n"}, math.MaxInt64},
		"a malformed line":  {"x\n:\n", nil, math.MaxInt64},
		"zero and negative": {"0::/a/b\n", map[string]string{v2 + "a/b/memory.max": "0\n", v2 + "a/memory.max": "-1\n"}, math.MaxInt64},
	} {
		root := fstest.MapFS{}
		if test.own != "" {
			root["proc/self/cgroup"] = &fstest.MapFile{Data: []byte(test.own)}
		}
		for file, text := range test.files {
			root[file] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := container(root); got != test.want {
			t.Errorf("%s: container() = %d, want %d", name, got, test.want)
		}
	}
}

// TestMachine checks that the machine's memory and GOMEMLIMIT bound what the process may take.
func TestMachine(t *testing.T) {
	own := physical()
	if own < 64*mb {
		t.Skip("this system does not say how much memory the machine has")
	}
	empty := t.TempDir()
	before := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(before)
	if got, want := machine(empty, 0.5), int64(own/2); got < want-1 || got > want+1 {
		t.Errorf("machine(0.5) = %d of %d", got, own)
	}
	debug.SetMemoryLimit(48 * mb)
	if got := machine(empty, 0.9); got != 48*mb {
		t.Errorf("machine() with GOMEMLIMIT = %d, want %d", got, 48*mb)
	}
}
