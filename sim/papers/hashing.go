package papers

import (
	"context"
	"crypto/md5"
	"encoding/binary"
	"flag"
	"fmt"
	"hash/crc32"
	"math"
	"math/bits"
	"strconv"

	"github.com/summarycache/summarycache/arith"
	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/sim/lab"
)

var hashingExperiment = lab.Experiment{
	Name:    "hashing",
	Summary: "the documents' hash schemes: false positives against prediction, chi-square, and bad hashes",
	Seconds: 26,
	Flags: func(flags *flag.FlagSet) lab.Runner {
		n, shapes := lab.KeysFlag(flags), lab.ShapesFlag(flags)
		return func(ctx context.Context, job *lab.Job) error {
			all, err := hashingInputs(*n, *shapes)
			if err != nil {
				return err
			}
			return runHashing(ctx, job, all)
		}
	},
}

// hashingLookups is how many absent keys are looked up for each scheme and
// geometry.
const hashingLookups = 4_000_000

type hashingGeometry struct {
	n  uint64
	mn float64
	k  int
}

var hashingGeometries = []hashingGeometry{
	{10_000, 8, 5}, {10_000, 14, 2}, {10_000, 48, 3}, {10_000, 16, 11}, {10_000, 10, 4},
	{1_000, 10, 4}, {100, 8, 5}, {100, 16, 11},
}

// hashingPositions bounds the array of one filter, and the arrays of all filters of a scheme
// together. Each array is cleared and filled, which would take most of the time with few keys
// and a large m/n.
const hashingPositions = 1_000_000_000

// hashingInputs returns the geometries to try: each of the user's shapes for each number of
// keys.
func hashingInputs(keys []int, shapes []lab.Shape) (all []hashingGeometry, err error) {
	if len(keys)+len(shapes) == 0 {
		return hashingGeometries, nil
	}
	for _, n := range lab.Or(keys, []int{10_000, 100}) {
		for _, g := range lab.Or(shapes, []lab.Shape{{MN: 8, K: 5}, {MN: 14, K: 2}, {MN: 16, K: 11}}) {
			if m := float64(n) * g.MN; m > hashingPositions {
				return nil, fmt.Errorf("--n %d with --geometry %g:%d: %.0f positions, want %d at the most", n, g.MN, g.K, m, hashingPositions)
			}
			all = append(all, hashingGeometry{uint64(n), g.MN, g.K})
		}
	}
	return all, nil
}

// filtersOf returns how many filters of m positions and n keys to try, 2 or more, and how many
// absent keys to look up in each: ten times n, or more if the bound on the arrays allows fewer
// filters.
func filtersOf(n, m uint64, lookups int) (filters, each int) {
	each = max(1, min(int(10*n), lookups/2))
	filters = max(2, (lookups+each-1)/each)
	if most := max(2, int(hashingPositions/m)); filters > most {
		filters, each = most, (lookups+most-1)/most
	}
	return filters, each
}

func runHashing(ctx context.Context, job *lab.Job, geometries []hashingGeometry) error {
	lookups := hashingLookups
	if job.Trials > 0 {
		lookups = job.Trials
	}
	type run struct {
		geometry hashingGeometry
		scheme   hashScheme
		result   hashingResult
	}
	var runs []run
	for _, g := range geometries {
		for _, s := range hashSchemes {
			if s.most == 0 || g.k <= s.most {
				runs = append(runs, run{geometry: g, scheme: s})
			}
		}
	}
	err := job.Each(ctx, len(runs), "schemes tried", func(i int) error {
		r := &runs[i]
		r.result = r.scheme.try(job, uint64(i), r.geometry, lookups)
		return nil
	})
	if err != nil {
		return err
	}
	table := job.Table("Schemes: false positives and chi-square, each in standard deviations from what independent uniform positions give",
		lab.Column{Name: "n"}, lab.Column{Name: "m"}, lab.Column{Name: "k"}, lab.Column{Name: "scheme"},
		lab.Column{Name: "predicted", Head: "f predicted", Format: "%.5g"}, lab.Column{Name: "measured", Head: "f measured", Format: "%.5g", Loose: lab.AnyValue},
		lab.Column{Name: "excess", Head: "excess %", Format: "%+.0f", Loose: lab.AnyValue}, lab.Column{Name: "sd", Head: "in sd", Format: "%+.1f", Loose: lab.AnyValue},
		lab.Column{Name: "chi_square", Head: "chi-square in sd", Format: "%+.1f", Loose: lab.AnyValue})
	for _, r := range runs {
		table.Row(r.geometry.n, r.result.m, r.geometry.k, r.scheme.name, lab.Round(r.result.predicted, 8), lab.Measure{Value: lab.Round(r.result.f, 6), Half: 1.96 * r.result.sd},
			lab.Round(100*(r.result.f/r.result.predicted-1), 4), lab.Round((r.result.f-r.result.predicted)/r.result.sd, 3), lab.Round(r.result.chi, 3))
	}
	const few, fewM, fewK = 100, 1600, 11
	exact := lab.ExactFalsePositives(fewM, few, fewK)
	table.Note("Predicted exactly for the size of the array, which is a prime, a power of two or a multiple of k where the scheme needs that: (1-p)^k is %.1f %% lower at 100 keys and k=11.",
		less(lab.FalsePositives(fewM/few, fewK), exact))
	table.Note("Chi-square: over %d equal bins of the array, less its expectation, in its standard deviations.", chiBins)
	table.Note("Partitioned is worse than standard, as the lecture says: by %.1f %% at 100 keys and k=11, by %.3f %% at 10,000.",
		-less(partitioned(fewM, few, fewK), exact), -less(partitioned(160_000, 10_000, fewK), lab.ExactFalsePositives(160_000, 10_000, fewK)))
	table.Note("Two mod prime: with probability 1-(1-1/p^2)^n some key has both hashes of another key, which the lecture ignores: %.2g at 100 keys and k=11 (p=149), ten times f; %.2g at 10,000 (p=14549), a tenth of f.",
		sameHashes(149, 100), sameHashes(14_549, 10_000))
	badHashes(job, lookups)
	grothoff(job, lookups)
	spyropoulos(job)
	return ctx.Err()
}

// partitioned is f if each hash has m/k positions of its own.
func partitioned(m, n uint64, k int) float64 {
	return math.Pow(-math.Expm1(float64(n)*math.Log1p(-float64(k)/float64(m))), float64(k))
}

// sameHashes is the probability that one of n keys has the same two hashes modulo p as another
// key.
func sameHashes(p, n float64) float64 { return -math.Expm1(n * math.Log1p(-1/(p*p))) }

// A hashingResult has the measurements of a scheme.
type hashingResult struct {
	m         uint64
	predicted float64 // f of independent uniform positions, as many
	f, sd     float64 // mean over filters, and its standard deviation
	chi       float64 // of positions, in standard deviations
}

// try fills filters with names and looks up as many others.
func (s hashScheme) try(job *lab.Job, label uint64, g hashingGeometry, lookups int) hashingResult {
	r := hashingResult{m: uint64(math.Round(float64(g.n) * g.mn))}
	if s.fit != nil {
		r.m = s.fit(r.m, g.k)
	}
	r.predicted = lab.ExactFalsePositives(r.m, g.n, g.k)
	filters, each := filtersOf(g.n, r.m, lookups)
	rates := make([]float64, filters)
	var bins chiSquare
	for i := range filters {
		names := nameSource{prefix: "http://www" + strconv.FormatUint(label, 10) + ".example.com/" + strconv.Itoa(i) + "/", seed: job.Seed}
		inside := s.filter(r.m, g.k, int(g.n), &names, &bins)
		hits := 0
		for range each {
			name, key := names.next()
			if inside(name, key) {
				hits++
			}
		}
		rates[i] = float64(hits) / float64(each)
	}
	r.f, r.sd = lab.MeanAndError(rates)
	r.chi = bins.deviations()
	return r
}

// filter adds n names, counts their positions in bins, and returns a function that looks a name
// up.
func (s hashScheme) filter(m uint64, k, n int, names *nameSource, bins *chiSquare) func(name []byte, key uint64) bool {
	buf := make([]uint64, k)
	words := lab.NewBitmap(m)
	for range n {
		name, key := names.next()
		positions := s.positions(buf, name, key, m)
		for _, p := range positions {
			bins.add(p, m)
		}
		words.Set(positions...)
	}
	return func(name []byte, key uint64) bool { return words.HasAll(s.positions(buf, name, key, m)) }
}

// nameSource makes names with increasing numbers, and hashes them as a cache does.
type nameSource struct {
	prefix string
	seed   uint64
	count  uint64
	buf    []byte
}

// next returns the next name, valid until the next call, and its key.
func (s *nameSource) next() (name []byte, key uint64) {
	s.buf = strconv.AppendUint(append(s.buf[:0], s.prefix...), s.count, 10)
	s.count++
	return s.buf, uint64(digest.KeyOf(s.seed, s.buf))
}

const chiBins = 256

// chiSquare counts positions in bins of equal width.
type chiSquare struct {
	bins  [chiBins]uint64
	m     uint64
	total uint64
}

func (c *chiSquare) add(p, m uint64) {
	c.bins[p*chiBins/m]++
	c.m = m
	c.total++
}

// deviations returns the statistic less its expectation for uniform positions, in standard
// deviations.
func (c *chiSquare) deviations() float64 {
	sum, first := 0.0, uint64(0)
	for i, observed := range c.bins {
		// Bin i holds the positions p with p·bins/m = i.
		after := (uint64(i+1)*c.m + chiBins - 1) / chiBins
		expected := float64(c.total) * float64(after-first) / float64(c.m)
		first = after
		if expected > 0 {
			sum += (float64(observed) - expected) * (float64(observed) - expected) / expected
		}
	}
	const freedom = chiBins - 1
	return (sum - freedom) / math.Sqrt(2*freedom)
}

// A hashScheme turns a key into k positions in [0, m).
type hashScheme struct {
	name string
	// fit returns the array size nearest to m, from above, that the scheme can use;
	// nil means any.
	fit    func(m uint64, k int) uint64
	digest digest.Scheme // if package digest has it; if not, 0, and then
	// formula stores the positions of a key in out. It gets the name, and the name's 64-bit
	// hash.
	formula func(out []uint64, name []byte, key, m uint64)
	most    int // the largest k; 0 for any
}

// hashSchemes are the schemes of the documents, and their forms in practice. All except the
// last start from one good 64-bit hash.
var hashSchemes = []hashScheme{
	{name: "independent hashes", digest: digest.Independent},
	{name: "double, mod 2^64 (ours)", digest: digest.Double},
	{name: "enhanced double, mod m", digest: digest.EnhancedDouble},
	{name: "double, mod m", formula: doubleModulo},
	{name: "double, mod m prime", fit: func(m uint64, _ int) uint64 { return nextPrime(m) }, formula: doubleModulo},
	{name: "double, mod m = 2^j", fit: func(m uint64, _ int) uint64 { return 1 << bits.Len64(m-1) }, formula: doubleModulo},
	{name: "partitioned, independent", digest: digest.Partitioned,
		fit: func(m uint64, k int) uint64 { return (m + uint64(k) - 1) / uint64(k) * uint64(k) }},
	{name: "partitioned, two mod prime", digest: digest.TwoModPrime,
		fit: func(m uint64, k int) uint64 { return uint64(k) * nextPrime(m/uint64(k)) }},
	{name: "MD5's four words mod m", most: 4, formula: func(out []uint64, name []byte, _, m uint64) {
		sum := md5.Sum(name)
		for i := range out {
			out[i] = uint64(binary.LittleEndian.Uint32(sum[4*i:])) % m
		}
	}},
}

// positions returns the key's positions. It stores them in buf, which has room for k.
func (s hashScheme) positions(buf []uint64, name []byte, key, m uint64) []uint64 {
	if s.formula == nil {
		return digest.Geometry{Bits: m, Hashes: cap(buf), Scheme: s.digest}.AppendPositions(buf[:0], digest.Key(key))
	}
	buf = buf[:cap(buf)]
	s.formula(buf, name, key, m)
	return buf
}

// doubleModulo is h1 + i·h2 mod m with both hashes uniform in [0, m): the form in
// which the lecture, Spyropoulos, and Kirsch and Mitzenmacher write it.
func doubleModulo(out []uint64, _ []byte, key, m uint64) {
	x, y := lab.High(key, m), lab.High(lab.Mix64(key+lab.Golden64), m)
	for i := range out {
		out[i] = x
		x = (x + y) % m
	}
}

// A badHash turns the i-th name into positions by a method that looks like one of the
// documents' methods but is not random enough.
type badHash struct {
	name, why string
	m         uint64
	k         int
	positions func(buf []uint64, i, m uint64) []uint64 // stored in buf, which has room for k
	// choose picks the names that are added; nil takes the first ones.
	choose func(m uint64, k, n int) []uint64
}

const badKeys = 10_000

// badHashName returns names of one length, like many names with a counter.
func badHashName(i uint64) []byte {
	text := strconv.FormatUint(i+1_000_000_000, 10)
	return append([]byte("http://www.example.com/item?number="), text...)
}

var badHashesTried = []badHash{
	{name: "x and 5x+4 mod m, m a multiple of 5", why: "the second takes m/5 values only, and both depend on x mod m alone",
		m: 80_000, k: 2, positions: linearPair},
	{name: "x and 5x+4 mod m, m prime", why: "the second is a function of the first: two keys that meet once meet twice, and k=2 is k=1",
		m: 80_021, k: 2, positions: linearPair},
	{name: "CRC-32 under k seeds, m = 2^17", why: "CRC is linear: under another seed all names of one length move alike, and k=5 is k=1",
		m: 1 << 17, k: 5, positions: func(out []uint64, i, m uint64) []uint64 {
			name := badHashName(i)
			for j := range out {
				out[j] = uint64(crc32.Update(uint32(j)*0x9e3779b9, crc32.IEEETable, name)) % m
			}
			return out
		}},
	{name: "a counter as the key, k = 1", why: "multiply-high takes the upper bits, and a counter has none: digests need keys made by KeyOf",
		m: 920_000, k: 1, positions: oursPositions},
	{name: "a counter as the key, k = 5", why: "the first position is wasted; the others start from a mixed step",
		m: 80_000, k: 5, positions: oursPositions},
	{name: "good, the seed unknown", why: "as predicted",
		m: 80_000, k: 5, positions: seededPositions},
	{name: "good, names chosen with the seed known", why: "names are tried until all of their positions are new: hence the secret seed",
		m: 80_000, k: 5, positions: seededPositions, choose: chooseCovering},
}

func linearPair(out []uint64, i, m uint64) []uint64 {
	x := lab.Mix64(i) >> 32 // numbers without order
	return append(out[:0], x%m, (5*x+4)%m)
}

// oursPositions returns the positions of package digest, with the number itself as the key.
func oursPositions(buf []uint64, i, m uint64) []uint64 {
	return hashSchemes[1].positions(buf, nil, i, m)
}

func seededPositions(buf []uint64, i, m uint64) []uint64 {
	var name [8]byte
	binary.LittleEndian.PutUint64(name[:], i)
	source := nameSource{prefix: string(name[:])}
	_, key := source.next()
	return oursPositions(buf, key, m)
}

// chooseCovering picks names that each set k new positions, as long as it finds such names in a
// few thousand tries.
func chooseCovering(m uint64, k, n int) []uint64 {
	const tries = 5_000
	taken := lab.NewBitmap(m)
	positions := make([]uint64, k)
	var chosen []uint64
	for i := uint64(0); len(chosen) < n; {
		best, bestNew := i, -1
		for range tries {
			fresh := 0
			for _, p := range seededPositions(positions, i, m) {
				if !taken.Has(p) {
					fresh++
				}
			}
			if fresh > bestNew {
				best, bestNew = i, fresh
			}
			if i++; fresh == k {
				break
			}
		}
		chosen = append(chosen, best)
		taken.Set(seededPositions(positions, best, m)...)
	}
	return chosen
}

// badHashes shows the effect on false positives and on the coded size.
func badHashes(job *lab.Job, lookups int) {
	table := job.Table("Bad hashes: n = 10,000",
		lab.Column{Name: "hash"}, lab.Column{Name: "m"}, lab.Column{Name: "k"},
		lab.Column{Name: "predicted", Head: "f predicted", Format: "%.4g"}, lab.Column{Name: "measured", Head: "f measured", Format: "%.4g", Loose: lab.AnyValue},
		lab.Column{Name: "times", Format: "%.2f", Loose: lab.AnyValue}, lab.Column{Name: "sent_predicted", Head: "z/n predicted", Format: "%.3f"},
		lab.Column{Name: "sent", Head: "z/n", Format: "%.3f", Loose: 0.005}, lab.Column{Name: "why"})
	lookups = min(lookups, 1_000_000)
	for _, b := range badHashesTried {
		f, sent := b.try(lookups)
		predicted := lab.FalsePositives(float64(b.m)/badKeys, float64(b.k))
		table.Row(b.name, b.m, b.k, lab.Round(predicted, 6), lab.Round(f, 6), lab.Round(f/predicted, 4),
			lab.Round(lab.SentBits(float64(b.m)/badKeys, float64(b.k)), 6), lab.Round(sent, 6), b.why)
	}
}

func (b badHash) try(lookups int) (f, bitsPerKey float64) {
	words := lab.NewBitmap(b.m)
	positions := make([]uint64, b.k)
	set := func(i uint64) { words.Set(b.positions(positions, i, b.m)...) }
	if b.choose != nil {
		for _, i := range b.choose(b.m, b.k, badKeys) {
			set(i)
		}
	} else {
		for i := range uint64(badKeys) {
			set(i)
		}
	}
	const absent = 1 << 31 // no name from here on was added
	hits := 0
	for i := range uint64(lookups) {
		if words.HasAll(b.positions(positions, absent+i, b.m)) {
			hits++
		}
	}
	coded := arith.AppendBitmap(nil, arith.Choose(b.m, uint64(words.Ones())), b.m, words)
	return float64(hits) / float64(lookups), 8 * float64(len(coded)) / badKeys
}
