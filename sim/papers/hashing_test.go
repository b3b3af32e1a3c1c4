package papers

import (
	"math"
	"strings"
	"testing"

	"github.com/summarycache/summarycache/sim/lab"
)

// TestSchemes tries every scheme at 1,000 keys. None may be measurably worse than predicted
// there, and all positions must be uniform and in range.
func TestSchemes(t *testing.T) {
	if testing.Short() {
		t.Skip("counts false positives in one goroutine")
	}
	job := lab.Quiet(6)
	g := hashingGeometry{1_000, 10, 4}
	for i, s := range hashSchemes {
		r := s.try(job, uint64(i), g, 200_000)
		if off := (r.f - r.predicted) / r.sd; math.Abs(off) > 5 || math.Abs(r.f/r.predicted-1) > 0.2 {
			t.Errorf("%s: f = %v, %+.1f standard deviations from %v", s.name, r.f, off, r.predicted)
		}
		if math.Abs(r.chi) > 5 {
			t.Errorf("%s: chi-square is %+.1f standard deviations off", s.name, r.chi)
		}
	}
}

// TestSchemesAtFewKeys finds the defect that the lecture's analysis ignores.
func TestSchemesAtFewKeys(t *testing.T) {
	if testing.Short() {
		t.Skip("counts false positives in one goroutine")
	}
	job := lab.Quiet(6)
	g := hashingGeometry{100, 16, 11}
	for i, s := range hashSchemes {
		if s.name != "partitioned, two mod prime" {
			continue
		}
		r := s.try(job, uint64(i), g, 400_000)
		want := sameHashes(149, 100) + r.predicted
		if math.Abs(r.f-want) > 5*r.sd+0.05*want {
			t.Errorf("%s at 100 keys: f = %v ± %v, want %v", s.name, r.f, r.sd, want)
		}
	}
}

func TestChiSquare(t *testing.T) {
	const m = 1000
	var even, uniform, skewed chiSquare
	rng := lab.Quiet(8).Source(0)
	for i := range uint64(100 * m) {
		even.add(i%m, m)
		uniform.add(lab.Below(rng, m), m)
		skewed.add(lab.Below(rng, m)/2, m)
	}
	if got := even.deviations(); math.Abs(got+math.Sqrt(255.0/2)) > 1e-9 {
		t.Errorf("equal counts are %v standard deviations off, want %v", got, -math.Sqrt(255.0/2))
	}
	if got := uniform.deviations(); math.Abs(got) > 4 {
		t.Errorf("uniform counts are %v standard deviations off", got)
	}
	if got := skewed.deviations(); got < 1000 {
		t.Errorf("half the array is %v standard deviations off", got)
	}
}

func TestBadHashes(t *testing.T) {
	if testing.Short() {
		t.Skip("counts false positives in one goroutine")
	}
	for _, b := range badHashesTried {
		f, _ := b.try(50_000)
		predicted := lab.FalsePositives(float64(b.m)/badKeys, float64(b.k))
		times := f / predicted
		if bad := b.why != "as predicted"; bad && times < 2 || !bad && math.Abs(times-1) > 0.2 {
			t.Errorf("%s: f is %v times the prediction", b.name, times)
		}
	}
	// If names are chosen to set k new positions each, f = (kn/m)^k.
	last := badHashesTried[len(badHashesTried)-1]
	f, _ := last.try(200_000)
	if want := math.Pow(float64(last.k)*badKeys/float64(last.m), float64(last.k)); math.Abs(f/want-1) > 0.05 {
		t.Errorf("chosen names: f = %v, want %v", f, want)
	}
}

func TestSpyropoulos(t *testing.T) {
	job := lab.Quiet(1)
	spyropoulos(job)
	table := job.Tables[0]
	for _, row := range table.Rows {
		if row[4] != "yes" {
			t.Errorf("step %v", row)
		}
	}
	if last := table.Rows[len(table.Rows)-1]; last[5] != "0010110001" {
		t.Errorf("the filter is %v, want the one printed", last[5])
	}
	if notes := strings.Join(table.Notes, "\n"); !strings.Contains(notes, "40 % of all numbers (residues 2, 4, 5, 9)") {
		t.Errorf("notes: %s", notes)
	}
}

func TestGrothoff(t *testing.T) {
	if testing.Short() {
		t.Skip("counts false positives in one goroutine")
	}
	job := lab.Quiet(1)
	grothoff(job, 200_000)
	for _, row := range job.Tables[0].Rows {
		low, high, choice, measured := row[4].(float64), row[5].(float64), row[7].(float64), row[8].(float64)
		if choice <= max(low, high) {
			t.Errorf("b=%v: the choice, %v, is not worse than %v and %v", row[0], choice, low, high)
		}
		if sd := math.Sqrt(choice / 200_000); math.Abs(measured-choice) > 5*sd+0.05*choice {
			t.Errorf("b=%v: measured %v, want %v", row[0], measured, choice)
		}
	}
	if first := job.Tables[0].Rows[0]; first[2] == first[3] {
		t.Errorf("b=%v: the nearest k, %v, is the best", first[0], first[2])
	}
}

// TestHashingBound checks that few keys in a large array do not lead to thousands of large
// arrays, and that the published geometries are tried as often as before.
func TestHashingBound(t *testing.T) {
	for _, c := range []struct {
		n, m          uint64
		filters, each int
	}{
		{10_000, 480_000, 40, 100_000},
		{100, 1_600, 4_000, 1_000},
		{100, 100_000_000, 10, 400_000},
		{100, 1_000_000_000, 2, 2_000_000},
		{10_000, 2_000_000_000, 2, 2_000_000}, // the next power of two
	} {
		if filters, each := filtersOf(c.n, c.m, hashingLookups); filters != c.filters || each != c.each {
			t.Errorf("filtersOf(%d, %d) = %d, %d, want %d, %d", c.n, c.m, filters, each, c.filters, c.each)
		}
	}
	if _, err := hashingInputs([]int{1_000_000}, []lab.Shape{{MN: 1e6, K: 1}}); err == nil {
		t.Error("hashingInputs of 10^12 positions: no error")
	}
	if all, err := hashingInputs([]int{10_000_000}, []lab.Shape{{MN: 92, K: 1}}); err != nil || len(all) != 1 {
		t.Errorf("hashingInputs of 92 positions for each of 10^7 keys = %v, %v", all, err)
	}
}
