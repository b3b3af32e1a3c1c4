package canonical

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
)

const sites = "../../SITES.md"

// between returns the part of SITES.md between two marks.
func between(t *testing.T, mark string) string {
	doc, err := os.ReadFile(sites)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(doc), "<!-- "+mark+" -->\n")
	table, _, ok2 := strings.Cut(rest, "<!-- end of "+mark+" -->\n")
	if !ok || !ok2 {
		t.Fatalf("%s lacks its marks for %s", sites, mark)
	}
	return table
}

// TestPathsInSites runs the examples of the table.
func TestPathsInSites(t *testing.T) {
	rows := strings.Split(strings.TrimSpace(between(t, "paths")), "\n")[2:]
	if len(rows) < 10 {
		t.Fatalf("only %d rows", len(rows))
	}
	for _, row := range rows {
		cells := strings.Split(strings.Trim(row, "|"), "|")
		sent, want, why := strings.Trim(cells[0], " `"), strings.Trim(cells[1], " `"), strings.TrimSpace(cells[2])
		u, err := url.Parse("http://h" + sent)
		if err != nil {
			t.Fatal(err)
		}
		if got := URL(u); got.EscapedPath() != want || Ambiguous(u) != (why != "") {
			t.Errorf("%q goes on as %q, ambiguous %v; the table has %q, %q", sent, got.EscapedPath(), Ambiguous(u), want, why)
		}
	}
}

// TestFieldsInSites compares the list of fields.
func TestFieldsInSites(t *testing.T) {
	var want strings.Builder
	want.WriteString("| read as | fields |\n|---|---|\n")
	for _, as := range slices.Sorted(maps.Keys(readings)) {
		names := strings.Fields(readings[as])
		slices.Sort(names)
		fmt.Fprintf(&want, "| %s | `%s` |\n", as, strings.Join(names, "`, `"))
	}
	if got := between(t, "fields"); got != want.String() {
		t.Errorf("%s should have\n%s", sites, want.String())
	}
}
