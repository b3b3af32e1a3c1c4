package planted

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	mutants     = flag.Int("mutants", 0, "draw so `many` functions, change one thing in each, and run the tests")
	mutantOnly  = flag.String("mutant", "", "only those drawn whose package and function match the `regexp`")
	mutantOwn   = flag.Bool("mutant-own", false, "run the tests of the mutant's package only")
	mutantBound = flag.Duration("mutant-bound", 3*time.Minute, "for the tests of one package")
	mutantTime  = flag.Duration("mutant-time", 24*time.Hour, "for all of it: for what is left then there is no time")
	mutantLive  = flag.Int("mutant-live", 0, "fail only if more live than this")
)

// A mutant is a function with a mistake that was drawn.
type mutant struct {
	name string // of the fault
	place
	mutation
}

func (m mutant) String() string { return fmt.Sprintf("%s: %s", m.place, m.kind) }

// drawMutants draws functions, and in each the kind of mistake, among those that it has, and then the mistake. What
// does not compile is drawn again, and so is a function in which nothing does.
func drawMutants(t *testing.T, n int, seed string) (list []mutant) {
	t.Helper()
	for _, p := range places(t, seed) {
		if len(list) == n {
			break
		}
		if m, ok := p.mutate(t, rand.New(rand.NewPCG(hash(seed, p.String()), 0))); ok {
			m.name = fmt.Sprintf("mutant-%d", len(list)+1)
			list = append(list, m)
		}
	}
	return list
}

// mutate draws a mutation that compiles.
func (p place) mutate(t *testing.T, random *rand.Rand) (mutant, bool) {
	all := packages(t)
	info, file, err := check(all, p.in, p.in.text)
	if err != nil {
		t.Fatal(err)
	}
	at := p.in.offset(p.fn.Pos())
	i := slices.IndexFunc(file.Decls, func(d ast.Decl) bool { return files.PositionFor(d.Pos(), false).Offset == at })
	kinds := map[string][]mutation{}
	var names []string
	for _, m := range mutations(info, p.in.text, file.Decls[i].(*ast.FuncDecl)) {
		if kinds[m.kind] == nil {
			names = append(names, m.kind)
		}
		kinds[m.kind] = append(kinds[m.kind], m)
	}
	slices.Sort(names)
	for len(names) > 0 {
		k := random.IntN(len(names))
		of := kinds[names[k]]
		j := random.IntN(len(of))
		m := of[j]
		text := apply(p.in.text, 0, len(p.in.text), []edit{m.edit})
		if _, _, err := check(all, p.in, []byte(text)); err == nil {
			return mutant{place: p, mutation: m}, true
		}
		if kinds[names[k]] = slices.Delete(of, j, j+1); len(of) == 1 {
			names = slices.Delete(names, k, k+1)
		}
	}
	return mutant{}, false
}

// diff returns the lines that a mutant changes, without the space before them, after their number in the function.
func (m mutant) diff() string {
	text, e := m.in.text, m.edit
	from := bytes.LastIndexByte(text[:e.from], '\n') + 1
	line := bytes.Count(text[m.in.offset(m.fn.Pos()):from], []byte("\n"))
	to := len(text)
	if i := bytes.IndexByte(text[e.to:], '\n'); i >= 0 {
		to = e.to + i
	}
	old, now := string(text[from:to]), apply(text, from, to, []edit{e})
	return fmt.Sprintf("@@ %d @@\n", line) + marked("-", old) + marked("+", now)
}

// marked returns the lines of a text that are not empty, each after a mark.
func marked(mark, text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			out.WriteString(mark + line + "\n")
		}
	}
	return out.String()
}

// TestMutants draws mutants and runs the tests on each: those of its own package, then those of packages that import
// it.
func TestMutants(t *testing.T) {
	if *mutants == 0 {
		t.Skip("-mutants 60 draws faults and runs the tests on each, which takes hours")
	}
	only, err := regexp.Compile(*mutantOnly)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), *mutantTime)
	defer cancel()
	list := drawMutants(t, *mutants, *drawSeed)
	list = slices.DeleteFunc(list, func(m mutant) bool { return !only.MatchString(m.place.String()) })
	var planted []planting
	for _, m := range list {
		planted = append(planted, planting{m.name, m.in, m.fn, []edit{m.edit}})
	}
	b := withPlanted(t, t.TempDir(), planted)
	b.ctx = ctx
	results := map[string]int{}
	var live strings.Builder
	for i, m := range list {
		result, how := m.result(b)
		if ctx.Err() != nil {
			t.Logf("no time is left for %d", len(list)-i)
			break
		}
		results[result]++
		t.Logf("%-10s %s %s: %s\n%s", m.name, result, m, how, m.diff())
		if result == "lives" {
			fmt.Fprintf(&live, "%s\n%s", m, m.diff())
		}
	}
	t.Logf("of %d: %v, in %.0f s", len(list), results, time.Since(began).Seconds())
	if results["lives"] > *mutantLive {
		t.Errorf("%d live, at most %d may:\n%s", results["lives"], *mutantLive, &live)
	}
}

// result says what becomes of a mutant, and why.
func (m mutant) result(b *binaries) (result, how string) {
	for _, e := range equivalents(b.t) {
		if e.Package == m.in.dir && e.Function == functionName(m.fn) && e.Diff == m.diff() {
			return "changes nothing", e.Why
		}
	}
	own := testedBy[m.in.dir]
	if own == nil {
		own = []string{m.in.dir}
	}
	undecided := ""
	for _, of := range []struct {
		result string
		dirs   []string
	}{{"found by its own", own}, {"found by another", importers(packages(b.t), m.in.dir)}} {
		if of.result != "found by its own" && *mutantOwn {
			break
		}
		for _, dir := range of.dirs {
			if p := packages(b.t)[module+dir]; len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 {
				continue
			}
			how, sure := b.kills(m.name, dir)
			if how != "" && sure {
				return of.result, how
			}
			undecided = cmp.Or(undecided, how)
		}
	}
	if undecided != "" {
		return "undecided", undecided
	}
	return "lives", "no test"
}

var (
	failedTest  = regexp.MustCompile(`(?m)^ *--- FAIL: (\w+)`)
	runningTest = regexp.MustCompile(`running tests:\s+(\w+)\S* \(([^)]*)\)`)
	crash       = regexp.MustCompile(`(?m)^(panic|fatal error): .*`)
)

// kills runs the tests of a package with a fault, and says which fails. It is sure if that passes without the fault. A
// test that does not is left out; where a program ends without the name of a test, all must pass.
func (b *binaries) kills(fault, dir string) (how string, sure bool) {
	args := []string{"-test.short", "-test.timeout=" + mutantBound.String()}
	for skip := "^$"; ; {
		out, failed := b.run(fault, dir, append(args, "-test.skip="+skip)...)
		if !failed {
			return "", true
		}
		name, why := "", ""
		if m := runningTest.FindStringSubmatch(out); m != nil {
			name, why = m[1], " has no end"
			if took, _ := time.ParseDuration(m[2]); took < *mutantBound/2 {
				return dir + why + " in time, at " + name, false
			}
		} else if m := failedTest.FindStringSubmatch(out); m != nil {
			name = m[1]
		} else {
			why = cmp.Or(crash.FindString(out), out[max(0, len(out)-300):])
		}
		how = strings.TrimPrefix(dir, "cmd/peer/internal/") + " " + name + why
		only := "."
		if name != "" {
			only = "^" + name + "$"
		}
		if out, failed = b.run("", dir, append(args, "-test.run="+only)...); !failed {
			return how, true
		} else if name == "" {
			return how + ", and without the fault: " + out[max(0, len(out)-300):], false
		}
		b.t.Logf("%s fails without a fault as well: it is left out", how)
		skip += "|" + only
	}
}

// An equivalent is a mutant with which nothing changes that anybody could see.
type equivalent struct {
	Package, Function string
	Diff              string
	Why               string // in one sentence
}

// equivalents returns those that are known.
func equivalents(t *testing.T) (list []equivalent) {
	t.Helper()
	text, err := os.ReadFile("equivalent.json")
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&list); err != nil {
		t.Fatal("equivalent.json: ", err)
	}
	return list
}

// TestEquivalentsApply names those whose function has another text now.
func TestEquivalentsApply(t *testing.T) {
	all := sources(t)
	for _, e := range equivalents(t) {
		found := false
		for _, s := range all {
			for _, d := range s.syntax.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if s.dir == e.Package && ok && functionName(fn) == e.Function {
					found = e.applies(string(s.text[s.offset(fn.Pos()):s.offset(fn.End())]))
				}
			}
		}
		if !found || e.Why == "" {
			t.Errorf("%s %s has no such place, or no reason: drop it from the list\n%s", e.Package, e.Function, e.Diff)
		}
	}
}

// applies tells whether a function has the lines that the diff begins with, where it says.
func (e equivalent) applies(function string) bool {
	var at int
	if _, err := fmt.Sscanf(e.Diff, "@@ %d @@\n", &at); err != nil {
		return false
	}
	_, diff, _ := strings.Cut(e.Diff, "\n")
	old, _, _ := strings.Cut("\n"+diff, "\n+")
	lines := strings.SplitAfterN(function, "\n", at+1)
	return len(lines) == at+1 && strings.HasPrefix(marked("-", lines[at]), old[1:])
}
