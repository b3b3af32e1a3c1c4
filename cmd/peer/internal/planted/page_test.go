package planted

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite FAULTS.md")

// TestPage compares FAULTS.md with the table.
func TestPage(t *testing.T) {
	file := filepath.Join(root, "cmd/peer/FAULTS.md")
	want := page()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("FAULTS.md is not what the table says (%v): run go test ./cmd/peer/internal/planted -run Page -update", err)
	}
}

const preface = `# Planted faults

Faults that tests must find, and what finds them. They are patches, which no program has: tests compile them into copies of the
functions, with '-overlay', and the variable 'PLANTED' of the environment switches one on.

'''sh
go test ./cmd/peer/internal/planted -run FaultsApply             # each still fits the code: seconds, in every run
go test ./cmd/peer/internal/planted -v -run Replay -replay .     # each is found by what this page says
go test ./cmd/peer/internal/planted -v -run Search -search no-resume   # what else finds it
go test ./cmd/peer/internal/planted -v -run Draw -draw 40 -draw-seed 2  # names functions to plant others in
go test ./cmd/peer/internal/planted -v -run Overlay -out DIR     # for other commands: it prints their environment
go test ./cmd/peer/internal/planted -run Page -update            # writes this page
'''

To plant one: an entry in 'cmd/peer/internal/planted/faults_test.go' and, if nothing finds it, the test that is missing. A patch has the
package, the function, and what to replace, an expression or whole statements as Go prints them; that must occur once. Where code changes so that a fault no longer fits,
'FaultsApply' names it: patch what does the same now. Without a test, a fault is found by a seed of the
[simulation](internal/simulation/doc.go) or by a [mutated request](REQUESTS.md).

## Mutants

Mutants are faults that nobody chooses: a seed draws functions, and in each a mistake, such as a comparison turned, a statement dropped or
an error ignored. The tests of its own package run first, with '-short', then those of the packages that import it. What lives is printed as
a diff: it needs a test, in the package of the function, or if nothing changes an entry in
'cmd/peer/internal/planted/equivalent.json', with the proof. Use a clone for nothing else: a mutant may write, and delete, where
it should not.

'''sh
go test ./cmd/peer/internal/planted -v -run Draw -draw 60 -draw-seed 7    # only names them
go test ./cmd/peer/internal/planted -v -timeout 0 -run Mutants -mutants 60 -draw-seed 7    # hours
go test ./cmd/peer/internal/planted -v -timeout 0 -run Mutants -mutants 60 -draw-seed 7 -mutant Tick   # of these
.ci/run mutants                                                           # ten, drawn by the commit: three minutes
'''
`

func page() string {
	var out strings.Builder
	out.WriteString(strings.ReplaceAll(preface, "'", "`"))
	for _, o := range []struct {
		from        origin
		title, text string
	}{
		{history, "Faults of the past", "Each was found by hand, in long runs or by attacks, or by the simulation itself, and is put back."},
		{attack, "Faults that a request reaches", "By each, one client could decide what others get."},
		{drawn, "Faults in functions that were drawn", "The functions are the first that `-draw-seed 1` named. None was chosen because it is found or not. %s"},
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
		out.WriteString("| fault | in | what goes wrong | found by |\n|---|---|---|---|\n")
		for _, f := range list {
			var in []string
			for _, p := range f.in {
				in = append(in, "`"+path.Base(p.dir)+"."+p.function+"`")
			}
			fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", f.name, strings.Join(slices.Compact(in), ", "), f.what, f.found)
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
	return fmt.Sprintf("The tests as they stood\nfound %d of %d. For the others a test was added, in the package of the fault.", before, len(list))
}

func (at finder) String() string {
	switch {
	case at.test != "":
		text := "`" + at.test + "`"
		if at.in != "" {
			text += " of `" + strings.TrimPrefix(at.in, "cmd/peer/internal/") + "`"
		}
		return text
	case at.seed > 0:
		return fmt.Sprintf("seed %d, %s", at.seed, cmp.Or(at.seen, "no end"))
	case at.request > 0:
		return fmt.Sprintf("request %d", at.request)
	}
	return "nothing yet"
}
