package simulation

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	mutate = flag.String("mutate", "", "put those faults of the list back in whose names match the `regexp`, and look for them")
	budget = flag.Uint64("budget", 2000, "how many seeds a mutation has to be found in")
)

// A mutation puts a fault back into the code that it once had.
type mutation struct {
	name  string
	what  string // would be seen
	edits []edit
}

// An edit replaces a piece of text that stands once in a file, named from the module's root.
type edit struct{ file, old, new string }

const moduleRoot = "../../../.."

func (e edit) apply(root string) error {
	path := filepath.Join(root, e.file)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if n := strings.Count(string(text), e.old); n != 1 {
		return fmt.Errorf("%s has %d times %q, want once", e.file, n, e.old)
	}
	return os.WriteFile(path, []byte(strings.Replace(string(text), e.old, e.new, 1)), 0o600)
}

// TestMutationsApply refuses a list that the code has outgrown.
func TestMutationsApply(t *testing.T) {
	for _, m := range mutations {
		for _, e := range m.edits {
			text, err := os.ReadFile(filepath.Join(moduleRoot, e.file))
			if err != nil {
				t.Skip("the source is not here: ", err) // as on wasip1
			}
			if n := strings.Count(string(text), e.old); n != 1 || e.old == e.new {
				t.Errorf("%s: %s has %d times %q, want once", m.name, e.file, n, e.old)
			}
		}
	}
}

// TestMutations shows within how many seeds each fault of the list is found.
func TestMutations(t *testing.T) {
	if *mutate == "" {
		t.Skip("takes an hour: -mutate . runs all")
	}
	for _, m := range mutations {
		if ok, err := regexp.MatchString(*mutate, m.name); err != nil {
			t.Fatal(err)
		} else if ok {
			t.Run(m.name, func(t *testing.T) { m.find(t) })
		}
	}
}

var foundBy = regexp.MustCompile(`seed (\d+): (?:\d+ violations?\n\s*(\w+): (.*)|(no end after .*))`)

// find runs seeds on a copy with the mutation until one fails that the code as it is passes.
func (m mutation) find(t *testing.T) {
	root := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(root, os.DirFS(moduleRoot)); err != nil {
		t.Fatal(err)
	}
	for _, e := range m.edits {
		if err := e.apply(root); err != nil {
			t.Fatal(err)
		}
	}
	mutant := filepath.Join(root, "mutant")
	build := exec.Command("go", "test", "-c", "-vet=off", "-o", mutant, "./cmd/peer/internal/simulation")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the mutant does not compile: %v\n%s", err, out)
	}
	began := time.Now()
	for next, end := *from, *from+*budget; ; next++ {
		out, err := sweep(mutant, next, end-next)
		if err == nil {
			t.Errorf("not found within %d seeds: the simulation lacks something that shows %s", *budget, m.what)
			return
		}
		hit := foundBy.FindSubmatch(out)
		if hit == nil {
			t.Fatalf("%v\n%s", err, out)
		}
		next, _ = strconv.ParseUint(string(hit[1]), 10, 64)
		if _, err := sweep(os.Args[0], next, 1); err == nil {
			t.Logf("found by seed %d from %d on, in %v: %s%s %s", next, *from, time.Since(began).Round(time.Second), hit[2], hit[4], hit[3])
			return
		}
		t.Logf("seed %d fails without it too", next)
	}
}

// sweep runs seeds up to the first that fails.
func sweep(binary string, from, n uint64) ([]byte, error) {
	run := exec.Command(binary, "-test.run=Seeds", "-test.failfast", "-only="+*only, "-shrink=0", "-stuck=90s", "-test.timeout=0",
		fmt.Sprintf("-test.parallel=%d", option("parallel")), fmt.Sprintf("-from=%d", from), fmt.Sprintf("-seeds=%d", n))
	run.Dir = filepath.Dir(binary)
	return run.CombinedOutput()
}
