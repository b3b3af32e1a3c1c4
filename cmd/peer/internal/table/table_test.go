package table

import (
	"math"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	table := New("peer", ">hits", "note")
	table.Row("añb", 7)
	table.Row("longer-name", "1,234", "x")
	table.Rule()
	table.Row("total", 1241)
	var b strings.Builder
	if err := table.Write(&b, "  "); err != nil {
		t.Fatal(err)
	}
	want := `  peer          hits  note
  añb              7
  longer-name  1,234  x
  -----------  -----  ----
  total         1241
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestWideTable(t *testing.T) {
	for _, c := range []struct {
		name   string
		header []string
		row    []any
		want   string
	}{
		{"as wide as may be", []string{"a b", "c"}, []any{strings.Repeat("x", 70), "12345678"},
			"a b" + strings.Repeat(" ", 69) + "c\n" + strings.Repeat("x", 70) + "  12345678\n"},
		{"headings in lines", []string{"ODD NAME", ">FALSE HITS", "z"}, []any{"p", 12345, strings.Repeat("x", 67)},
			"ODD   FALSE\nNAME   HITS  z\np     12345  " + strings.Repeat("x", 67) + "\n"},
		{"a last column in lines", []string{"a", "note"}, []any{"p", strings.Repeat("word ", 20)},
			"a  note\np  " + strings.Repeat("word ", 14) + "word\n   word word word word word\n"},
		{"blocks", []string{"a", "b", ">c", ">d"}, []any{"p", strings.Repeat("x", 60), strings.Repeat("y", 20), 7},
			"a  b\np  " + strings.Repeat("x", 60) + "\n\na" + strings.Repeat(" ", 21) + "c  d\np  " + strings.Repeat("y", 20) + "  7\n"},
		{"a word that is too long", []string{"a", "b", "c"}, []any{strings.Repeat("x", 90), 1, 2},
			"a" + strings.Repeat(" ", 91) + "b\n" + strings.Repeat("x", 90) + "  1\n\na" + strings.Repeat(" ", 91) + "c\n" + strings.Repeat("x", 90) + "  2\n"},
		{"no header", nil, nil, ""},
	} {
		table := New(c.header...)
		table.Row(c.row...)
		var b strings.Builder
		if err := table.Write(&b, ""); err != nil || b.String() != c.want {
			t.Errorf("%s: %v, got\n%swant\n%s", c.name, err, b.String(), c.want)
		}
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
