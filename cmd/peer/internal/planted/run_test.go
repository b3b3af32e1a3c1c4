package planted

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	replay = flag.String("replay", "", "switch on each fault whose name matches the `regexp`, and run what is known to find it")
	part   = flag.String("part", "1/1", "replay only this part of them, such as 2/3: by the packages that find them")
	search = flag.String("search", "", "switch on each fault whose name matches the `regexp`, and look for what finds it")
	seeds  = flag.Uint64("seeds", 500, "of the simulation that -search tries")
)

const (
	simulation = "cmd/peer/internal/simulation"
	program    = "cmd/peer"
)

// testedBy are the packages whose tests are those of a package.
var testedBy = map[string][]string{
	"gossip/httpcache/engine": {"gossip/httpcache/engine", "gossip/httpcache", "cmd/peer/internal/proxy"},
	"gossip/internal/wire":    {"gossip/invalidation", "gossip/exchange"},
}

// TestReplay checks that each fault is found by what the table says.
func TestReplay(t *testing.T) {
	if *replay == "" {
		t.Skip("takes minutes: -replay . tries all")
	}
	all, list := withFaults(t, t.TempDir(), faults), matching(t, *replay)
	slices.SortStableFunc(list, func(a, b fault) int { return cmp.Compare(a.found.dir(a), b.found.dir(b)) })
	var i, n int
	if _, err := fmt.Sscanf(*part, "%d/%d", &i, &n); err != nil || i < 1 || i > n {
		t.Fatalf("-part %s is no part", *part)
	}
	for _, f := range list[len(list)*(i-1)/n : len(list)*i/n] {
		began := all.cpu
		if how := all.replay(f); how == "" {
			t.Errorf("%s is not found by what the table says: %+v", f.name, f.found)
		} else {
			t.Logf("%-24s %5.1f s  %s", f.name, (all.cpu - began).Seconds(), how)
		}
	}
	t.Logf("%.0f s of CPU time, of which the compiler took %.0f", (all.cpu + all.compiling).Seconds(), all.compiling.Seconds())
}

// TestSearch tells by what each fault is found: its package's tests, the simulation, mutated requests.
func TestSearch(t *testing.T) {
	if *search == "" {
		t.Skip("takes hours: -search . looks for all")
	}
	all := withFaults(t, t.TempDir(), faults)
	for _, f := range matching(t, *search) {
		own, sim, oracle := all.tests(f), all.firstSeed(f, 1, *seeds), ""
		if n := strings.Fields(strings.Trim(sim, ",")); len(n) > 1 {
			all.passes(strings.Trim(n[1], ","))
		}
		if f.found.request > 0 {
			oracle = all.request(f, 0, 2000)
		}
		t.Logf("%-24s %s; %s; %s", f.name, cmp.Or(own, "no test"), cmp.Or(sim, "no seed"), cmp.Or(oracle, "no request"))
		if own+sim+oracle == "" {
			t.Errorf("%s is not found: no test shows that %s", f.name, f.what)
		}
	}
}

func matching(t *testing.T, name string) (list []fault) {
	t.Helper()
	names, err := regexp.Compile("^(" + name + ")$")
	if err != nil {
		t.Fatal(err)
	}
	if name == "." {
		names = regexp.MustCompile("")
	}
	for _, f := range faults {
		if names.MatchString(f.name) {
			list = append(list, f)
		}
	}
	if len(list) == 0 {
		t.Fatalf("no fault is named %s", name)
	}
	return list
}

// binaries are test binaries that have the faults, one a package.
type binaries struct {
	t              *testing.T
	ctx            context.Context // ends programs that still run
	dir, overlay   string
	built          map[string]string // by the package's directory
	cpu, compiling time.Duration
}

func withFaults(t *testing.T, dir string, list []fault) *binaries {
	t.Helper()
	var all []planting
	for _, f := range list {
		places, err := f.plant(sources(t))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, places...)
	}
	return withPlanted(t, dir, all)
}

func withPlanted(t *testing.T, dir string, list []planting) *binaries {
	t.Helper()
	return &binaries{t: t, ctx: t.Context(), dir: dir, overlay: writeOverlay(t, dir, list), built: map[string]string{}}
}

func (b *binaries) of(dir string) string {
	if b.built[dir] == "" {
		file := filepath.Join(b.dir, fmt.Sprintf("%d.test", len(b.built)))
		build := exec.CommandContext(b.ctx, "go", "test", "-c", "-vet=off", "-overlay", b.overlay, "-ldflags", "-s -w", "-o", file, "./"+dir)
		build.Dir = root
		if out, err := build.CombinedOutput(); b.ctx.Err() != nil {
			return "" // nothing starts any more
		} else if err != nil {
			b.t.Fatalf("%s with the faults: %v\n%s", dir, err, out)
		}
		b.compiling += build.ProcessState.UserTime() + build.ProcessState.SystemTime()
		b.built[dir] = file
	}
	return b.built[dir]
}

// run runs the tests of a package with a fault, and reports whether they fail.
func (b *binaries) run(fault, dir string, args ...string) (out string, failed bool) {
	limit := "" // of memory, since a loop that does not end may fill it
	if runtime.GOOS == "linux" {
		limit = "ulimit -v 8388608 && "
	}
	run := exec.CommandContext(b.ctx, "sh", append([]string{"-c", limit + `exec "$0" -test.failfast "$@"`, b.of(dir)}, args...)...)
	run.Dir = filepath.Join(root, dir)
	run.Env = append(os.Environ(), "PLANTED="+fault)
	run.WaitDelay = 10 * time.Second // for programs that the tests started
	text := &tail{}
	run.Stdout, run.Stderr = text, text
	err := run.Run()
	if s := run.ProcessState; s != nil {
		b.cpu += s.UserTime() + s.SystemTime()
	}
	return string(*text), err != nil
}

// A tail is the end of what was written.
type tail []byte

func (t *tail) Write(p []byte) (int, error) {
	if *t = append(*t, p...); len(*t) > 8<<20 {
		*t = slices.Delete(*t, 0, len(*t)-4<<20)
	}
	return len(p), nil
}

// replay runs what is known to find a fault, and says how it did; "" = it did not.
func (b *binaries) replay(f fault) (how string) {
	switch at := f.found; {
	case at.test != "":
		return b.failing(f, at.dir(f), "-test.run=^("+at.test+")$")
	case at.seed > 0:
		return b.firstSeed(f, at.seed, 20) // those that follow may find it as well, when schedules have changed
	default:
		return b.request(f, at.request, 1)
	}
}

// dir is the directory of the package whose tests find a fault.
func (at finder) dir(f fault) string {
	switch {
	case at.seed > 0:
		return simulation
	case at.request > 0:
		return program
	}
	return cmp.Or(at.in, f.in[0].dir)
}

// failing runs tests of a package, and returns the first that fails.
func (b *binaries) failing(f fault, dir string, args ...string) string {
	out, failed := b.run(f.name, dir, append(args, "-test.timeout=1m")...)
	if m := regexp.MustCompile(`(?m)^ *--- FAIL: (\S+)|^(panic: .*)`).FindStringSubmatch(out); failed && m != nil {
		return strings.TrimPrefix(dir, "cmd/peer/internal/") + " " + m[1] + m[2]
	} else if failed {
		return strings.TrimPrefix(dir, "cmd/peer/internal/") + ": " + out[max(0, len(out)-200):]
	}
	return ""
}

// tests runs all tests of the fault's package.
func (b *binaries) tests(f fault) string {
	dir := f.in[0].dir
	if testedBy[dir] == nil {
		return b.failing(f, dir, "-test.short")
	}
	for _, dir := range testedBy[dir] {
		if how := b.failing(f, dir, "-test.short"); how != "" {
			return how
		}
	}
	return ""
}

var bySeed = regexp.MustCompile(`seed (\d+): (?:\d+ violations?\n\s*(\w+): |(no end) after )|FAIL: TestSeeds/seed=(\d+) .*\s+panic: (.*)`)

// firstSeed runs seeds of the simulation until one fails.
func (b *binaries) firstSeed(f fault, from, n uint64) string {
	out, failed := b.run(f.name, simulation, "-test.run=Seeds", "-shrink=0", "-stuck=90s", "-test.timeout=0", "-test.parallel=1", "-only="+f.found.seen,
		fmt.Sprintf("-from=%d", from), fmt.Sprintf("-seeds=%d", n))
	m := bySeed.FindStringSubmatch(out)
	switch {
	case !failed:
		return ""
	case m == nil:
		b.t.Errorf("%s: the simulation ends otherwise than by a violation:\n%.3000s", f.name, out)
		return ""
	}
	return fmt.Sprintf("seed %s, %s", m[1]+m[4], cmp.Or(m[2], m[3], m[5]))
}

// passes checks that a seed fails only with a fault.
func (b *binaries) passes(seed string) {
	if _, failed := b.run("", simulation, "-test.run=Seeds", "-shrink=0", "-test.parallel=1", "-from="+seed, "-seeds=1"); failed {
		b.t.Errorf("seed %s fails without any fault", seed)
	}
}

// request sends mutated requests, and returns what others notice of them.
func (b *binaries) request(f fault, from, n int) string {
	out, failed := b.run(f.name, program, "-test.run=MutatedRequests$", fmt.Sprintf("-mutation-from=%d", from), fmt.Sprintf("-mutations=%d", n))
	if m := regexp.MustCompile(`(?m)^ *(\d+) +\d+ times +.*(?:` + f.found.shows + ").*$").FindStringSubmatch(out); failed && m != nil {
		return "request " + m[1] + ", " + strings.Join(strings.Fields(m[0])[3:], " ")
	}
	return ""
}
