package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestFindings looks up every number in the cell that it is said to come from.
func TestFindings(t *testing.T) {
	text, err := os.ReadFile("RESULTS.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := readResults(t, string(text))
	for _, f := range findings {
		for _, s := range f.from {
			if got := s.cells(shown); len(got) != 1 || got[0] != s.value {
				t.Errorf("%s: %s, %s has %q, want %q", s.experiment, s.row, s.column, got, s.value)
			}
			if said := strings.Trim(s.value, "yesno"); !strings.Contains(" "+f.words, " "+said) {
				t.Errorf("%q does not say %s", f.words, s.value)
			}
		}
	}
	if len(findings) != 10 {
		t.Errorf("%d lines", len(findings))
	}
}

// cells returns what is in the source's place, by row.
func (s source) cells(shown map[string][]shownTable) (cells []string) {
	for _, c := range chapters {
		if c.experiment != s.experiment {
			continue
		}
		for _, table := range shown[c.title] {
			column := slices.Index(table.head, s.column)
			if column < 0 || !strings.HasPrefix(table.title, s.table) {
				continue
			}
			for _, row := range table.rows {
				if strings.HasPrefix(strings.Join(row, " / ")+" / ", s.row+" / ") {
					cells = append(cells, row[column])
				}
			}
		}
	}
	return cells
}
