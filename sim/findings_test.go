package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	findingSource = regexp.MustCompile("\\(`(?:sim |go run -C sim/)([a-z]+)(?: \\.)?`, `([^`]+)`: ((?:`[^`]+`(?:; )?)+)\\)")
	findingNumber = regexp.MustCompile(`\d+(?:\.\d+)?`)
)

// TestFindings looks up every number of RESULTS.md's first page in the rows that are named as
// its source.
func TestFindings(t *testing.T) {
	shown := readResults(t, resultsText)
	other, err := os.ReadFile(filepath.Join("rateless", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	shown["rateless"] = readResults(t, string(other))[""]
	_, page, _ := strings.Cut(resultsText, "\n## What was found\n")
	page, _, _ = strings.Cut(page, "\n## ")
	items := strings.Split(page, "\n- ")[1:]
	for _, item := range items {
		item = strings.Join(strings.Fields(item), " ")
		known := map[string]bool{}
		sources := findingSource.FindAllStringSubmatch(item, -1)
		for _, m := range sources {
			for row := range strings.SplitSeq(m[3], "; ") {
				row = strings.Trim(row, "`")
				found := rowsOf(shown, m[1], m[2], row)
				if len(found) != 1 {
					t.Errorf("sim %s, %s: %d rows %q", m[1], m[2], len(found), row)
					continue
				}
				for _, number := range findingNumber.FindAllString(found[0], -1) {
					known[number] = true
				}
			}
		}
		words := findingSource.ReplaceAllString(item, "")
		for _, number := range findingNumber.FindAllString(words, -1) {
			if !known[number] {
				t.Errorf("%s is not in its named source: %q", number, words)
			}
		}
		if len(sources) == 0 || strings.Contains(words, "`") {
			t.Errorf("no source, or one in another form: %q", item)
		}
	}
	if len(items) != 8 {
		t.Errorf("%d findings", len(items))
	}
}

// rowsOf returns the rows that begin with cells, each after its table's title. It searches
// those tables of an experiment whose titles begin with title.
func rowsOf(shown map[string][]shownTable, experiment, title, cells string) (rows []string) {
	chapter := experiment
	if known := chapterOf(experiment); known != "" {
		chapter = known
	}
	for _, table := range shown[chapter] {
		for _, row := range table.rows {
			if text := strings.Join(row, " / ") + " / "; strings.HasPrefix(table.title, title) && strings.HasPrefix(text, cells+" / ") {
				rows = append(rows, table.title+" / "+text)
			}
		}
	}
	return rows
}
