package digest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"testing"
)

func readme(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Every row of the README's table of sizes is what real filters take. The page says a million
// keys; READMEKEYS=1000000 in the environment measures these, to within 1 %. A tenth of the
// keys takes up to 3 % more, mostly for the header of a small delta.
func TestReadmeTable(t *testing.T) {
	if testing.Short() {
		t.Skip("measures sizes in one goroutine")
	}
	keys, tolerance := 100_000, 0.03
	if os.Getenv("READMEKEYS") == "1000000" {
		keys, tolerance = 1_000_000, 0.01
	}
	row := regexp.MustCompile(`(?m)^\| (\d+) \| (\d+) \| ([\d.]+)% \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$`)
	rows := row.FindAllStringSubmatch(readme(t), -1)
	if len(rows) != 4 {
		t.Fatalf("README.md has %d rows of sizes, want 4", len(rows))
	}
	for _, r := range rows {
		ratio, _ := strconv.Atoi(r[1])
		hashes, _ := strconv.Atoi(r[2])
		t.Run(fmt.Sprintf("bits=%d/k=%d", ratio, hashes), func(t *testing.T) {
			got := costOf(t, Geometry{Bits: uint64(ratio * keys), Hashes: hashes}, keys)
			for i, name := range []string{"false positives, %", "bits/key sent whole", "bits per replaced key", "bits/key held"} {
				want, _ := strconv.ParseFloat(r[3+i], 64)
				if math.Abs(got[i]-want) > tolerance*want {
					t.Errorf("%s = %.3f, README.md says %s", name, got[i], r[3+i])
				}
			}
		})
	}
}

// costOf fills a filter, replaces 1 % of its keys, and returns the false-positive
// rate in percent, the bits a key of the whole message, those of the delta per
// replaced key, and the bits a key that the filter occupies.
func costOf(t *testing.T, g Geometry, n int) [4]float64 {
	t.Helper()
	held, err := NewCountingFilter(g, 1)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	keys := make([]Key, n)
	for i := range keys {
		keys[i] = Key(rng.Uint64())
		held.Add(keys[i])
	}
	before := held.Advance()
	for _, k := range keys[:n/100] {
		held.Remove(k)
		held.Add(Key(rng.Uint64()))
	}
	_, delta := held.AdvanceDelta()
	bits := func(bytes, keys int) float64 { return 8 * float64(bytes) / float64(keys) }
	return [4]float64{
		100 * before.FalsePositiveRate(),
		bits(len(before.AppendTo(nil)), n),
		bits(len(encode(t, delta, before)), n/100),
		bits(before.MemoryBytes(), n),
	}
}
