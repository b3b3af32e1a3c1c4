package table

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTable(t *testing.T) {
	table := New("peer", ">hits", "note")
	table.Row("añb", 7)
	table.Row("longer-name", "1,234", "x")
	table.Rule()
	table.Row("total", 1241)
	text := table.Text("  ")
	want := `  peer          hits  note
  añb              7
  longer-name  1,234  x
  -----------  -----  ----
  total         1241
`
	if text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

// TestLetters: columns are as wide as their letters, whatever these take in bytes, and wherever the widest stands.
func TestLetters(t *testing.T) {
	for _, cells := range [][3]string{{"größer", "a", "b"}, {"a", "größer", "b"}, {"a", "b", "größer"}, {"имя", "Ελλάδα", "naïve"}} {
		table := New(cells[0], ">n")
		table.Row(cells[1], 7)
		table.Row(cells[2], 8)
		widest := 0
		for _, c := range cells {
			widest = max(widest, utf8.RuneCountInString(c))
		}
		for line := range strings.Lines(table.Text("")) {
			if got := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); got != widest+len("  n") {
				t.Errorf("%v: %q has %d letters, want %d", cells, line, got, widest+len("  n"))
			}
		}
	}
}

// A table that would be wider than a terminal is narrowed.
func TestWide(t *testing.T) {
	table := New("PEER", ">WRONG ODDS", "DIGEST SAYS SO", ">A", ">B", ">C", "WHAT IT MEANS")
	table.Row("peer-1", "0.1 %", "yes", 1, 2, 3, "of the objects that a peer lacks, its digest claims one in a thousand")
	table.Row("peer-2", "0.2 %", "no", strings.Repeat("x", 20), 2, 3, "")
	text := table.Text(" ")
	want := `         WRONG  DIGEST                               WHAT
 PEER     ODDS  SAYS SO                     A  B  C  IT MEANS
 peer-1  0.1 %  yes                         1  2  3  of the objects that a peer
                                                     lacks, its digest claims
                                                     one in a thousand
 peer-2  0.2 %  no       xxxxxxxxxxxxxxxxxxxx  2  3
`
	if text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

// Headings of one word take one line, without an empty line above, however wide the table is.
func TestWideWithShortHeadings(t *testing.T) {
	table := New("to", ">count", "")
	table.Row("siblings", 7, strings.Repeat("more ", 20))
	if text := table.Text(""); !strings.HasPrefix(text, "to        count\nsiblings      7  more more") {
		t.Errorf("got\n%s", text)
	}
}

func TestNumbers(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -999: "-999"} {
		if got := Count(n); got != want {
			t.Errorf("Count(%d) = %s, want %s", n, got, want)
		}
	}
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.00 KiB", 10234: "9.99 KiB", 10236: "10.0 KiB", 102399: "100 KiB",
		1<<20 - 1: "1.00 MiB", 10 << 30: "10.0 GiB", math.MaxInt64: "8.00 EiB",
	} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %s, want %s", n, got, want)
		}
	}
	if got := Of(1, "object") + Of(0, "object") + Of(2000, "delta"); got != "1 object0 objects2,000 deltas" {
		t.Errorf("Of = %s", got)
	}
	if got := Percent(1, 3) + Percent(1, 0); got != "33.3 %-" {
		t.Errorf("Percent = %s", got)
	}
}
