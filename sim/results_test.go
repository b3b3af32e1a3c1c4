package main

import (
	"bytes"
	"encoding/xml"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/summarycache/summarycache/sim/lab"
)

// A shownTable is a table of RESULTS.md, with its cells as text.
type shownTable struct {
	title string
	head  []string
	rows  [][]string
}

// readResults returns the chapters' tables, by the chapters' titles.
func readResults(t *testing.T, text string) map[string][]shownTable {
	t.Helper()
	shown := map[string][]shownTable{}
	chapter := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		last := len(shown[chapter]) - 1
		switch {
		case strings.HasPrefix(line, "## "):
			chapter = line[3:]
		case strings.HasPrefix(line, "### "):
			shown[chapter] = append(shown[chapter], shownTable{title: line[4:]})
		case strings.HasPrefix(line, "| ") && last >= 0:
			cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "| "), " |"), " | ")
			table := &shown[chapter][last]
			switch {
			case table.head == nil:
				table.head = cells
			case strings.Trim(strings.Join(cells, ""), "-:") == "":
			default:
				table.rows = append(table.rows, cells)
			}
		}
	}
	return shown
}

// TestResults runs a short version of every chapter and compares it with the document. Computed
// values must be equal, and measured ones close.
func TestResults(t *testing.T) {
	if raceEnabled {
		t.Skip("the chapters' own tests run under the race detector")
	}
	text, err := os.ReadFile("RESULTS.md")
	if err != nil {
		t.Fatal(err)
	}
	drawn := 0
	document := readResults(t, string(text))
	job := lab.Quiet(1)
	job.Short, job.Out = true, t.TempDir()
	for _, c := range chapters {
		part, err := c.run(job)
		if err != nil {
			t.Fatal(err)
		}
		if len(strings.Fields(c.words())) < 20 {
			t.Errorf("RESULTS.md says nothing of %s but %q", c.experiment, c.words())
		}
		var short strings.Builder
		c.write(&short, part)
		shown, again := document[c.title], readResults(t, short.String())[c.title]
		if len(shown) != len(again) {
			t.Errorf("RESULTS.md has %d tables of %s, want %d", len(shown), c.experiment, len(again))
			continue
		}
		for i, table := range part.Tables {
			compareTables(t, table.OnPage(), shown[i], again[i])
			if table.Chart == nil {
				continue
			}
			drawn++
			path := filepath.Join("figures", table.Chart.File+".svg")
			if svg, err := os.ReadFile(path); err != nil || !bytes.Equal(svg, table.Draw()) {
				t.Errorf("%s is not what its table looks like (go run ./sim results %s): %v", path, c.experiment, err)
			}
			if !strings.Contains(string(text), "]("+path+")") {
				t.Errorf("RESULTS.md does not show %s", path)
			}
		}
	}
	if drawn != 6 {
		t.Errorf("%d charts, want 6", drawn)
	}
}

// TestFigures: sim/figures has the charts of the chapters, and nothing else.
func TestFigures(t *testing.T) {
	files, err := filepath.Glob("figures/*")
	if err != nil || len(files) != 6 {
		t.Errorf("figures has %v, %v; want 6", files, err)
	}
	for _, path := range files {
		svg, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(svg), "<desc>SHA-256 of the table's CSV: ") {
			t.Errorf("%s names no table: %v", path, err)
		}
		for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
		}
	}
}

func compareTables(t *testing.T, table *lab.Table, shown, again shownTable) {
	t.Helper()
	if strings.Join(shown.head, "|") != strings.Join(again.head, "|") || len(shown.rows) != len(again.rows) {
		t.Errorf("%s: RESULTS.md has %d rows of %q, want %d of %q", shown.title, len(shown.rows), shown.head, len(again.rows), again.head)
		return
	}
	for r, row := range shown.rows {
		for i, column := range table.Columns {
			if !near(row[i], again.rows[r][i], column.Loose) {
				t.Errorf("%s, row %d, %s: RESULTS.md has %q, a short run %q", shown.title, r+1, column.Heading(), row[i], again.rows[r][i])
			}
		}
	}
}

// near compares a value of the document with that of a short run, in which loose values may be
// missing.
func near(full, short string, loose float64) bool {
	if full == short || loose == lab.AnyValue || loose > 0 && short == "-" {
		return true
	}
	a, err1 := strconv.ParseFloat(full, 64)
	b, err2 := strconv.ParseFloat(short, 64)
	return err1 == nil && err2 == nil && math.Abs(a-b) <= loose*max(math.Abs(a), math.Abs(b))
}

func TestNear(t *testing.T) {
	for _, c := range []struct {
		full, short string
		loose       float64
		want        bool
	}{
		{"1.5", "1.5", 0, true}, {"1.5", "1.6", 0, false}, {"1.5", "1.6", 0.1, true}, {"1.5", "1.7", 0.1, false},
		{"1.5", "-", 0, false}, {"1.5", "-", 0.1, true}, {"-", "1.5", 0.1, false}, {"yes", "no", 0.1, false}, {"yes", "no", lab.AnyValue, true},
	} {
		if got := near(c.full, c.short, c.loose); got != c.want {
			t.Errorf("near(%s, %s, %v) = %v", c.full, c.short, c.loose, got)
		}
	}
}

// TestResultsByChapter replaces one chapter and keeps the rest.
func TestResultsByChapter(t *testing.T) {
	job := lab.Quiet(1)
	job.Out, job.Short, job.Args = t.TempDir(), true, []string{"trials"}
	path := filepath.Join(job.Out, "RESULTS.md")
	if err := runResults(job); err == nil {
		t.Error("chapters of no document were replaced")
	}
	old := "# Head\n\n## " + chapters[0].title + "\n\nkept\n\n## " + chapters[1].title + "\n\nreplaced\n\n## " + chapters[3].title + "\n\nkept too\n"
	if err := os.WriteFile(path, []byte(old), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := runResults(job); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(path)
	before, after, found := strings.Cut(string(text), "## "+chapters[1].title)
	if !found || !strings.HasSuffix(before, "\n\n## "+chapters[0].title+"\n\nkept\n\n") || !strings.Contains(before, "\n## What was found\n") ||
		!strings.HasSuffix(after, "\n\n## "+chapters[3].title+"\n\nkept too\n") || strings.Contains(after, "replaced") || !strings.Contains(after, "log2 C(m,x)") {
		t.Errorf("replaced one chapter: %.300s … %.300s", before, after)
	}
	if files, _ := os.ReadDir(job.Out); len(files) != 1 {
		t.Errorf("it leaves %v", files)
	}
	if code, _, errs := call("results", "--out", path); code != 2 || !strings.Contains(errs, "want a directory") {
		t.Errorf("results --out FILE: %d, %q", code, errs)
	}
	job.Args = []string{"trails"}
	if err := runResults(job); err == nil || !strings.Contains(err.Error(), `no chapter "trails"`) {
		t.Errorf("results trails: %v", err)
	}
}
