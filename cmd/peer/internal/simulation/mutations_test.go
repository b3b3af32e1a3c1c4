package simulation

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/mutant"
)

var (
	mutate = flag.String("mutate", "", "put those faults of the list back in whose names match the `regexp`, and look for them")
	budget = flag.Uint64("budget", 2000, "how many seeds a mutation has to be found in")
)

// A mutation puts a fault back into the code.
type mutation struct {
	name  string
	what  string // would be seen
	only  string // kinds of violations by which it is seen; "" = any
	edits []edit
}

type edit = mutant.Edit

const moduleRoot = "../../../.."

// TestMutationsApply checks that every mutation still fits the code.
func TestMutationsApply(t *testing.T) {
	for _, m := range mutations {
		if err := mutant.Check(moduleRoot, m.edits); errors.Is(err, fs.ErrNotExist) {
			t.Skip("the source is not here: ", err) // as on wasip1
		} else if err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}

// TestMutations shows how many seeds it takes to find each fault of the list.
func TestMutations(t *testing.T) {
	if *mutate == "" {
		t.Skip("takes an hour: -mutate . runs all")
	}
	table := ""
	for _, m := range mutations {
		if ok, err := regexp.MatchString(*mutate, m.name); err != nil {
			t.Fatal(err)
		} else if ok {
			t.Run(m.name, func(t *testing.T) { table += m.find(t) })
		}
	}
	t.Logf("the first seed from %d on that fails with each, the CPU time until then, and how it fails:\n%s", *from, table)
}

var foundBy = regexp.MustCompile(`seed (\d+): (?:\d+ violations?\n\s*(\w+): (.*)|(no end after .*))|FAIL: TestSeeds/seed=(\d+) .*\s+(panic: .*)`)

// find runs seeds with the mutation until one fails that the unchanged code passes, and
// returns a line of the table.
func (m mutation) find(t *testing.T) string {
	binary, err := mutant.Build(t.TempDir(), moduleRoot, m.edits)
	if err != nil {
		t.Fatal(err)
	}
	var cpu time.Duration
	for next, end := *from, *from+*budget; ; next++ {
		out, took, err := m.sweep(binary, next, end-next)
		cpu += took
		if err == nil {
			t.Errorf("not found within %d seeds, in %v of CPU time: the simulation lacks something that shows %s", *budget, cpu, m.what)
			return fmt.Sprintf("%-20s not within %d\n", m.name, *budget)
		}
		hit := foundBy.FindSubmatch(out)
		if hit == nil {
			t.Fatalf("%v\n%s", err, out)
		}
		next, _ = strconv.ParseUint(string(hit[1])+string(hit[5]), 10, 64)
		if _, _, err := m.sweep(os.Args[0], next, 1); err == nil {
			line := fmt.Sprintf("%-20s %5d  %5.0f s  %s%s%s\n", m.name, next, cpu.Seconds(), hit[2], hit[4], hit[6])
			t.Logf("found: %s%s", line, hit[3])
			return line
		}
		t.Logf("seed %d fails without it too", next)
	}
}

// sweep runs seeds up to the first that fails, and returns the CPU time that it took.
func (m mutation) sweep(binary string, from, n uint64) (out []byte, cpu time.Duration, err error) {
	kinds := m.only
	if kinds == "" {
		kinds = *only
	}
	run := exec.Command(binary, "-test.run=Seeds", "-test.failfast", "-only="+kinds, "-shrink=0", "-stuck=90s", "-test.timeout=0",
		fmt.Sprintf("-test.parallel=%d", option("parallel")), fmt.Sprintf("-from=%d", from), fmt.Sprintf("-seeds=%d", n))
	run.Dir = filepath.Dir(binary)
	out, err = run.CombinedOutput()
	if s := run.ProcessState; s != nil {
		cpu = s.UserTime() + s.SystemTime()
	}
	return out, cpu, err
}
