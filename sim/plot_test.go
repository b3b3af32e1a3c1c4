package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/summarycache/summarycache/sim/lab"
)

// A table that was printed as CSV is drawn as if it had not been: with the same SHA-256, which the picture carries.
func TestPlot(t *testing.T) {
	code, text, errs := call("limits", "--csv")
	if code != 0 {
		t.Fatal(errs)
	}
	path := filepath.Join(t.TempDir(), "a.csv")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := call("plot", path); code != 0 || !strings.Contains(out, "a-1.svg") {
		t.Fatalf("plot = %d, %s, %s", code, out, errs)
	}
	job := lab.Quiet(1)
	e, err := experiments.Find("limits")
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Run(job); err != nil {
		t.Fatal(err)
	}
	drawn := 0
	for i, table := range job.Tables {
		svg, err := os.ReadFile(strings.TrimSuffix(path, ".csv") + "-" + string(rune('1'+i)) + ".svg")
		if err != nil {
			continue // the first column is text
		}
		drawn++
		table.Chart = &lab.Chart{X: table.Columns[0].Name, Lines: []string{table.Columns[1].Name}}
		_, want, _ := strings.Cut(string(table.Draw()), "<desc>")
		want, _, _ = strings.Cut(want, "</desc>")
		if !strings.Contains(string(svg), want) {
			t.Errorf("%s: the picture does not have %s", table.Title, want)
		}
	}
	if drawn < 2 {
		t.Errorf("%d tables drawn", drawn)
	}
	for args, says := range map[string]string{"a.txt": "want one FILE.csv", "none.csv": "no such file", "results.csv": "no tables"} {
		if args == "results.csv" {
			args = filepath.Join(t.TempDir(), args)
			os.WriteFile(args, []byte("a,b\n1,2\n"), 0o600)
		}
		if code, _, errs := call("plot", args); code == 0 || !strings.Contains(errs, says) {
			t.Errorf("plot %s = %d, %s; want %s", args, code, errs, says)
		}
	}
}
