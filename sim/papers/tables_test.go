package papers

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/summarycache/summarycache/sim/lab"
)

var papers = flag.String("papers", "", "directory with the text editions of the documents, to compare the tables with")

// TestPublished counts the cells that were read from the documents' tables.
func TestPublished(t *testing.T) {
	cells, err := published()
	if err != nil {
		t.Fatal(err)
	}
	counts, sums := map[string]int{}, map[string]float64{}
	seen := map[string]int{}
	for _, c := range cells {
		value, err := c.Value.Float64()
		if err != nil || value <= 0 {
			t.Errorf("%s, %s, %s: %q", c.Table, c.Row, c.Column, c.Value)
		}
		counts[c.Table]++
		sums[c.Table] += value
		seen[fmt.Sprint(c.Table, c.Row, c.Column)]++
	}
	// Rows times columns; of Summary Cache, 31+22+11 rows with their best k.
	want := map[string]int{"I": 12, "II": 12, "III": 8, "IV": 12, "V": 12, "VI": 20, "VII": 20, "SC": 475}
	for table, n := range want {
		if counts[table] != n {
			t.Errorf("table %s has %d cells, want %d", table, counts[table], n)
		}
	}
	if len(counts) != len(want) {
		t.Errorf("tables %v, want those of %v", counts, want)
	}
	for mn := 2; mn <= 32; mn++ {
		// Each m/n is in as many of the three tables as its range of k requires.
		rows := 1
		if mn >= 11 {
			rows++
		}
		if mn >= 22 {
			rows++
		}
		if got := seen[fmt.Sprintf("SCm/n=%dk", mn)]; got != rows {
			t.Errorf("m/n=%d has its best k %d times, want %d", mn, got, rows)
		}
		for k := 1; k <= 24; k++ {
			if got := seen[fmt.Sprintf("SCm/n=%dk=%d", mn, k)]; got > 1 || got == 0 && k <= lab.BestInteger(float64(mn)) {
				t.Errorf("m/n=%d, k=%d is there %d times", mn, k, got)
			}
		}
	}
	for table, want := range map[string]float64{"I": 146.8961, "III": 23.242, "VI": 209.30607} {
		if math.Abs(sums[table]-want) > 1e-9 {
			t.Errorf("table %s sums to %v, want %v", table, sums[table], want)
		}
	}
}

// TestPublishedAgainstPapers looks for every line of the tables in the documents.
func TestPublishedAgainstPapers(t *testing.T) {
	if *papers == "" {
		t.Skip("no -papers")
	}
	for name, ours := range map[string]string{
		"mitzenmacher-compressed-bloom-filters.txt": mitzenmacherText,
		"summary-cache-bloom-filter-math.txt":       summaryCacheText,
	} {
		text, err := os.ReadFile(filepath.Join(*papers, name))
		if err != nil {
			t.Fatal(err)
		}
		theirs := strings.Split(string(text), "\n")
		for line := range strings.SplitSeq(strings.TrimSpace(ours), "\n") {
			if !slices.Contains(theirs, line) {
				t.Errorf("%s has no line %q", name, line)
			}
		}
	}
}

// TestWrongCells names every printed number that does not agree, and every one
// that was not rounded to the nearest.
func TestWrongCells(t *testing.T) {
	printed, err := published()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range printed {
		c := check(p)
		switch c.verdict {
		case wrong, adjacent:
			got = append(got, fmt.Sprintf("%s %s %s %s %s", p.Table, p.Row, p.Column, p.Value, c.text))
		}
		// For a value near a tie, a float64 would not be precise enough.
		units := c.computed / lastUnit(p.Value)
		if tie := math.Abs(units - math.Floor(units) - 0.5); tie < 1e-6 {
			t.Errorf("%s, %s, %s: %v is a tie at %v digits", p.Table, p.Row, p.Column, c.computed, p.Value)
		}
	}
	for _, c := range claims() {
		if !c.agrees || c.verdict == adjacent {
			got = append(got, fmt.Sprintf("%s %s %s %s", c.row, c.column, c.published, strings.SplitN(c.text, ";", 2)[0]))
		}
	}
	want := []string{
		"IV f m/n=12.6 0.0216 rounded up: the nearest is 0.0215",
		"VI z/n m/n=12 1.6607 wrong: 1.6532 is right",
		"VI z/n m/n=32 1.6532 wrong: 1.6607 is right",
		"VI z/(cn) m/n=12 33.214 wrong: 33.064 is right",
		"VI z/(cn) m/n=32 33.064 wrong: 33.214 is right",
		"VI z/(cn) m/n=13 26.248 cut off: the nearest is 26.249",
		"SC m/n=5 k 3.46 cut off: the nearest is 3.47",
		"SC m/n=30 k=15 8.39e-06 wrong: 8.39e-07 is right",
		"SC m/n=30 k=16 7.26e-06 wrong: 7.26e-07 is right",
		"Mitzenmacher, III-A bytes at m/n=48, k=3, n=10,000 19787 rounded up: the nearest is 19786",
		"Mitzenmacher, IV bytes of the delta at m/n=32, k=2, c=5 % 2066.5 wrong: 2075.9 is right",
		"Summary Cache, Figure 4 best number of hashes at m/n=10 5 wrong: 7 is right",
	}
	if !slices.Equal(got, want) {
		t.Errorf("printed numbers that are off:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		printed  json.Number
		computed float64
		want     verdict
		style    string
	}{
		{"0.400", 0.39957, nearest, "0.400"},
		{"0.0216", 0.021542, adjacent, "0.0215"},
		{"3.46", 3.4657, adjacent, "3.47"},
		{"8.39e-06", 8.388e-07, wrong, "8.39e-07"},
		{"8.39e-07", 8.388e-07, nearest, "8.39e-07"},
		{"7e-07", 6.951e-07, nearest, "7e-07"},
		{"8", 7, wrong, "7"},
		{"8", 7.01, adjacent, "7"},
		{"1.5", 1.45, nearest, "1.4"},
		{"x", 1, wrong, "1"},
	} {
		if got := judge(c.printed, c.computed); got != c.want {
			t.Errorf("judge(%s, %v) = %v, want %v", c.printed, c.computed, got, c.want)
		}
		if got := inStyle(c.printed, c.computed); got != c.style {
			t.Errorf("inStyle(%s, %v) = %s, want %s", c.printed, c.computed, got, c.style)
		}
	}
}

// TestMeasuredKinds makes small runs of a few columns. Sizes and counts must be those of the
// formulas, to within five standard deviations.
func TestMeasuredKinds(t *testing.T) {
	job := lab.Quiet(3)
	for i, c := range []struct {
		kind filterKind
		size float64 // relative standard deviation of the size of one filter or delta
	}{
		{filterKind{14, 2, 0}, 0.0012},
		{filterKind{92, 1, 0}, 0.0012},
		{filterKind{12, 3, 0.05}, 0.006},
		{filterKind{32, 2, 0.05}, 0.006},
		{filterKind{8, 6, 0}, 0.0002},
	} {
		const filters = 4
		m, err := c.kind.measure(job.Source(uint64(i)), filters, 40_000)
		if err != nil {
			t.Fatal(err)
		}
		k := float64(c.kind.k)
		want := lab.SentBits(c.kind.mn, k)
		if c.kind.c > 0 {
			want = lab.DeltaBits(c.kind.mn, k, c.kind.c)
		}
		const overhead = 0.002 // bits per key: two bytes in 10,000 keys
		if off := m.sent.Value/want - 1; math.Abs(off) > 5*c.size/math.Sqrt(filters)+overhead/want {
			t.Errorf("%v takes %v bits per key, want %v", c.kind, m.sent.Value, want)
		}
		f := lab.FalsePositives(c.kind.mn, k)
		sd := math.Sqrt(f / float64(m.probes))
		if !m.counted || math.Abs(m.f.Value-f) > 5*sd {
			t.Errorf("%v has f = %v from %d lookups, want %v ± %v", c.kind, m.f.Value, m.probes, f, sd)
		}
	}
	rare, err := filterKind{32, 22, 0}.measure(job.Source(99), 1, 1000)
	if f := lab.FalsePositives(32, 22); err != nil || rare.counted || math.Abs(rare.f.Value/f-1) > 0.15 {
		t.Errorf("m/n=32, k=22: f = %v (counted: %v), want %v by the share of positions set", rare.f.Value, rare.counted, f)
	}
}
