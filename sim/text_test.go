package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/summarycache/summarycache/sim/lab"
)

// fits fails for lines that are wider than a terminal.
func fits(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > lab.LineWidth {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// TestTablesFitTerminal: however wide a table is, each line fits, every value is printed once,
// and each part has the first column.
func TestTablesFitTerminal(t *testing.T) {
	for _, columns := range []int{1, 2, 5, 9, 30} {
		for _, key := range []string{"ours", "one owner per key, and hot caches, as groupcache has them", strings.Repeat("ö", 30)} {
			t.Run(fmt.Sprintf("%d columns, %s", columns, key), func(t *testing.T) {
				table := lab.Table{Title: strings.Repeat("what was measured and how, ", 6)}
				table.Columns = append(table.Columns, lab.Column{Name: "way"})
				for i := range columns {
					table.Columns = append(table.Columns, lab.Column{Name: fmt.Sprint("origin fetches/request, over each object once ", i), Format: "%.3f"})
				}
				for row := range 3 {
					values := []any{key}
					for i := range columns {
						values = append(values, float64(1000*row+i))
					}
					table.Row(values...)
				}
				table.Note("%s", strings.Repeat("a long note ", 30))
				var b bytes.Buffer
				if err := table.WriteText(&b); err != nil {
					t.Fatal(err)
				}
				text := b.String()
				fits(t, text)
				for row := range 3 {
					for i := range columns {
						if n := strings.Count(text, fmt.Sprintf(" %d.000", 1000*row+i)); n != 1 {
							t.Errorf("%d of row %d is there %d times:\n%s", i, row, n, text)
						}
					}
				}
				if headings := strings.Count(text, "way\n") + strings.Count(text, "way "); strings.Count(text, strings.Fields(key)[0]) != 3*headings {
					t.Errorf("not each of %d parts has its keys:\n%s", headings, text)
				}
			})
		}
	}
}

// TestHelpFitsTerminal checks the help of sim and of each experiment.
func TestHelpFitsTerminal(t *testing.T) {
	for _, args := range append([][]string{{"help"}}, func() (all [][]string) {
		for _, name := range experiments.Names() {
			all = append(all, []string{"help", name})
		}
		return all
	}()...) {
		var out, errs bytes.Buffer
		if code := run(t.Context(), args, &out, &errs); code != 0 {
			t.Fatalf("%v: exit code %d, %s", args, code, errs.String())
		}
		fits(t, out.String())
	}
}
