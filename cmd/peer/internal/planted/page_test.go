package planted_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite FAULTS.md")

// TestPage compares FAULTS.md with the table and with the places of the faults in the code.
func TestPage(t *testing.T) {
	file := filepath.Join(root, "cmd/peer/FAULTS.md")
	want := page(t)
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("FAULTS.md is not what the table says (%v): run go test ./cmd/peer/internal/planted -run Page -update", err)
	}
}

func page(t *testing.T) string {
	var out strings.Builder
	out.WriteString("# Planted faults\n\n" +
		"Faults that tests must find are planted in the code, beside what they break, as `if planted.Fault == \"…\"`. In a normal build\n" +
		"`planted.Fault` is a constant, and the compiler leaves them out. With the build tag `planted` it is the variable `PLANTED` of the\n" +
		"environment, and the version of such a `peer` ends with `-with-planted-faults`.\n\n" +
		"```sh\n" +
		"go test ./cmd/peer/internal/planted -v -run Replay -replay .     # each is found by what this page says\n" +
		"go test ./cmd/peer/internal/planted -v -run Search -search no-resume   # what else finds it\n" +
		"go test ./cmd/peer/internal/planted -v -run Draw -draw 40 -draw-seed 2  # names functions to plant others in\n" +
		"go test ./cmd/peer/internal/planted -run Page -update            # writes this page\n" +
		"```\n\n" +
		"To plant one: the comparison in the code, a line in `cmd/peer/internal/planted/faults_test.go` and, if nothing finds it, the test\n" +
		"that is missing. Without a test, it is found by a seed of the [simulation](internal/simulation/doc.go) or by a\n" +
		"[mutated request](REQUESTS.md).\n")
	for _, o := range []struct {
		from        origin
		title, text string
	}{
		{history, "Faults of the past", "Each was found by hand, in long runs or by attacks, or by the simulation itself, and is put back."},
		{attack, "Faults that a request reaches", "By each, one client could decide what others get."},
		{drawn, "Faults in functions that were drawn", "The functions are the first that `-draw-seed 1` names, on 25 November 2026, and the kinds of mistakes are those\n" +
			"that people make. None was chosen because it is found or not. %s"},
		{chosen, "Others", ""},
	} {
		fmt.Fprintf(&out, "\n## %s\n\n", o.title)
		list := slices.DeleteFunc(slices.Clone(faults), func(f fault) bool { return f.from != o.from })
		text := o.text
		if o.from == drawn {
			text = fmt.Sprintf(text, share(list))
		}
		if text != "" {
			out.WriteString(text + "\n\n")
		}
		out.WriteString("| fault | package | function | mistake | what goes wrong | found by |\n|---|---|---|---|---|---|\n")
		at := switches(t)
		for _, f := range list {
			var dirs, functions []string
			for _, p := range at[f.name] {
				dirs, functions = append(dirs, "`"+strings.TrimPrefix(p.dir, "cmd/peer/internal/")+"`"), append(functions, "`"+p.function+"`")
			}
			fmt.Fprintf(&out, "| %s | %s | %s | %s | %s | %s |\n", f.name, strings.Join(slices.Compact(dirs), ", "), strings.Join(slices.Compact(functions), ", "), f.kind, f.what, f.found)
		}
	}
	return out.String()
}

// share says how many faults the tests found before any was added for them.
func share(list []fault) string {
	before := 0
	for _, f := range list {
		if f.found != (finder{}) && !f.found.added {
			before++
		}
	}
	return fmt.Sprintf("The tests as they\nstood found %d of %d. For the others a test was added, in the package of the fault.", before, len(list))
}

func (at finder) String() string {
	switch {
	case at.test != "":
		text := "`" + at.test + "`"
		if at.in != "" {
			text += " of `" + strings.TrimPrefix(at.in, "cmd/peer/internal/") + "`"
		}
		if at.added {
			text += ", added for it"
		}
		return text
	case at.seed > 0:
		return fmt.Sprintf("seed %d, %s", at.seed, cmp.Or(at.seen, "no end"))
	case at.request > 0:
		return fmt.Sprintf("request %d", at.request)
	}
	return "nothing yet"
}
