package proxy

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the table in CONFORMANCE.md")

const (
	docFile  = "../../../../gossip/rfc9111/CONFORMANCE.md"
	docBegin = "<!-- rows -->\n"
	docEnd   = "<!-- end of rows -->\n"
)

// TestConformanceDoc checks that the table in the documentation lists the rows of the test.
func TestConformanceDoc(t *testing.T) {
	doc, err := os.ReadFile(docFile)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(doc), docBegin)
	table, foot, ok2 := strings.Cut(rest, docEnd)
	if !ok || !ok2 {
		t.Fatalf("%s lacks its marks", docFile)
	}
	want := conformanceTable()
	if table == want {
		return
	}
	if !*update {
		t.Fatalf("%s does not have the table of the rows; go test ./cmd/peer/internal/proxy -run ConformanceDoc -update rewrites it", docFile)
	}
	if err := os.WriteFile(docFile, []byte(head+docBegin+want+docEnd+foot), 0o644); err != nil {
		t.Fatal(err)
	}
}

// conformanceTable lists the rows by section.
func conformanceTable() string {
	rows := requirements()
	var sections []string
	for _, r := range rows {
		if !slices.Contains(sections, r.section) {
			sections = append(sections, r.section)
		}
	}
	slices.SortFunc(sections, compareSections)
	var b strings.Builder
	var others []row
	for _, r := range rows {
		if r.notLibrary() != "" {
			others = append(others, r)
		}
	}
	slices.SortStableFunc(others, func(a, b row) int { return strings.Compare(a.notLibrary(), b.notLibrary()) })
	fmt.Fprintf(&b, "\n%d requirements, each with a store on disk and one in memory; %d of them also of the library's cache (`httpcache.Member`). "+
		"The others:\n\n| requirements | why they are not run against the library's cache |\n|---|---|\n", len(rows), len(rows)-len(others))
	for i, r := range others {
		if i > 0 && r.notLibrary() == others[i-1].notLibrary() {
			continue
		}
		var names []string
		for _, same := range others {
			if same.notLibrary() == r.notLibrary() {
				names = append(names, same.name)
			}
		}
		fmt.Fprintf(&b, "| %s | %s |\n", strings.Join(names, "; "), r.notLibrary())
	}
	b.WriteString("\n")
	b.WriteString("| RFC, section | as forward and reverse proxy, and through a sibling | not through a sibling |\n|---|---|---|\n")
	for _, s := range sections {
		rfc, section, _ := strings.Cut(s, "-")
		var shared, local []string
		for _, r := range rows {
			name := strings.ReplaceAll(r.name, "|", "\\|")
			switch {
			case r.section != s:
			case r.local:
				local = append(local, name)
			default:
				shared = append(shared, name)
			}
		}
		fmt.Fprintf(&b, "| %s, %s | %s | %s |\n", rfc, section, strings.Join(shared, "; "), strings.Join(local, "; "))
	}
	b.WriteString("\n")
	return b.String()
}

// compareSections orders "9111-5.2.2" before "9111-5.2.10".
func compareSections(a, b string) int {
	numbers := func(s string) []int {
		var ns []int
		for _, f := range strings.FieldsFunc(s, func(r rune) bool { return r == '-' || r == '.' }) {
			n := 0
			fmt.Sscan(f, &n)
			ns = append(ns, n)
		}
		return ns
	}
	return slices.Compare(numbers(a), numbers(b))
}
