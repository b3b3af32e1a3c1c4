package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache"
)

// Three machines build the same program. What one has compiled the others do not compile again, also when one of those
// that have it is killed and when no cache runs any more.
func TestGoBuild(t *testing.T) {
	dir, packages := t.TempDir(), []string{"."}
	for name, text := range map[string]string{"go.mod": "module x\n\ngo 1.26\n", "main.go": "package main\n\nfunc main() { println(1) }\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if *long {
		dir, packages = filepath.Join("..", "..", ".."), []string{"./cmd/peer", "./sim"}
	}
	a := start(t, "a", nil)
	b := start(t, "b", nil, a)
	c := start(t, "c", nil, a, b)
	cold, compiled := build(t, a, dir, packages...)
	if compiled == 0 {
		t.Fatal("the first machine compiles nothing")
	}
	t.Logf("a: %v, %d packages compiled", cold, compiled)
	told(t, b, a)
	told(t, c, a)
	for _, m := range []*Machine{b, c} {
		if m == c {
			stops[b]()
		}
		took, again := build(t, m, dir, packages...)
		s := m.cache.Stats()
		t.Logf("%s: %v, %d packages compiled; %+v", m.Node.Name(), took, again, s)
		if again > 0 || s.Siblings == 0 {
			t.Errorf("%s compiles %d packages, %d values are siblings'", m.Node.Name(), again, s.Siblings)
		}
	}
	if *long {
		return
	}
	stops[c]()
	if _, again := build(t, c, dir, packages...); again != compiled {
		t.Errorf("without a cache %d packages are compiled, want %d", again, compiled)
	}
}

// ccache finds on a second machine what it has compiled on the first.
func TestCcache(t *testing.T) {
	for _, tool := range []string{"ccache", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
	source := filepath.Join(t.TempDir(), "x.c")
	if err := os.WriteFile(source, []byte("int twice(int n) { return 2 * n; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := start(t, "a", nil)
	b := start(t, "b", nil, a)
	for i, m := range []*Machine{a, b} {
		dir := t.TempDir()
		env := append(os.Environ(), "CCACHE_DIR="+dir, "CCACHE_NODIRECT=1", "CCACHE_SECONDARY_STORAGE=http://"+m.Addr, "CCACHE_REMOTE_STORAGE=http://"+m.Addr, "CCACHE_LOGFILE="+dir+"/log")
		cmd := exec.Command("ccache", "gcc", "-c", source, "-o", filepath.Join(dir, "x.o"))
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("ccache: %v\n%s", err, out)
		}
		log, err := os.ReadFile(filepath.Join(dir, "log"))
		if err != nil {
			t.Fatal(err)
		}
		if hit := strings.Contains(string(log), "Result: remote_storage_hit") || strings.Contains(string(log), "Result: secondary_storage_hit"); hit != (i == 1) {
			t.Errorf("machine %d: hit %v\n%s", i, hit, log)
		}
		if s := m.cache.Stats(); i == 1 && s.Siblings == 0 {
			t.Errorf("machine %d: %+v", i, s)
		}
		if i == 0 {
			told(t, b, a)
		}
	}
}

// A replayed stream with the pace of bazel-remote #919: 382 existence checks a second, 48 for each GET and 22 for each PUT.
// What is checked was put by one of three machines; one in fifty was put by nobody, and now and then the machine whose
// digest still has an output has just lost it. Each "present" comes from a machine that has the output, and a build asks
// the backend about the others only.
func TestExistenceChecks(t *testing.T) {
	a := start(t, "a", nil)
	machines := []*Machine{a, start(t, "b", nil, a), start(t, "c", nil, a)}
	var held []string // paths of outputs, the newest last
	put := func(i int) {
		t.Helper()
		body := fmt.Sprint("output ", i)
		if status, _ := ask(t, machines[i%3], "PUT", "/cas/"+sumOf(body).String(), body); status != http.StatusCreated {
			t.Fatalf("PUT: %d", status)
		}
		held = append(held, "/cas/"+sumOf(body).String())
	}
	const first, checks = 300, 2400
	for i := range first {
		put(i)
	}
	for i, m := range machines {
		advertised(t, m, "cas+"+strings.TrimPrefix(held[first-3+(i+1)%3], "/cas/"))
		advertised(t, m, "cas+"+strings.TrimPrefix(held[first-3+(i+2)%3], "/cas/"))
	}
	random := rand.New(rand.NewPCG(1, 2))
	present, absent, wrong, lost := 0, 0, 0, 0
	began := time.Now()
	for i := range checks {
		time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / 382)))
		m := machines[i%3]
		if i%22 == 21 {
			put(len(held))
		}
		at := random.IntN(len(held))
		path, exists := held[at], true
		switch {
		case i%50 == 49:
			path, exists = "/cas/"+sumOf(fmt.Sprint("nobody's ", i)).String(), false
		case i%200 == 150: // its machine loses it while another asks
			owner := machines[at%3]
			owner.cache.Purge(httpcache.TargetOf(httpcache.ValueURL(outputName(sumOf(fmt.Sprint("output ", at))))))
			m, exists = machines[(at+1)%3], false
			lost++
		case i%48 == 47:
			if status, _ := ask(t, m, "GET", path, ""); status != 200 && status != 404 {
				t.Errorf("GET: %d", status)
			}
		}
		switch status, _ := ask(t, m, "HEAD", path, ""); {
		case status == 200 && !exists && !anyHas(machines, path):
			wrong++
		case status == 200:
			present++
		default:
			absent++
		}
	}
	t.Logf("of %d checks %d are answered \"present\" by who has it, %.1f %%; %d ask the backend; %d are wrong, %d outputs were lost on the way", checks, present, 100*float64(present)/checks, absent, wrong, lost)
	if wrong > 0 || present < checks*95/100 {
		t.Errorf("%d present, %d wrong", present, wrong)
	}
}

// anyHas reports whether the store of any machine has an output.
func anyHas(machines []*Machine, path string) bool {
	for _, m := range machines {
		if m.Node.Holdings().Has("GET " + httpcache.ValueURL("cas "+strings.TrimPrefix(path, "/cas/"))) {
			return true
		}
	}
	return false
}
