package main

import (
	"encoding/json"
	"fmt"
	"math"
)

// A claim is a number in the running text of a document.
type claim struct {
	where, what string
	printed     json.Number
	computed    float64
	about       float64 // allowed error, if the text itself says that the number is rough; 0 otherwise
	note        string
}

// bytesOf is the bytes of a filter of 10,000 keys at z/n bits a key.
func bytesOf(bitsPerKey float64) float64 { return bitsPerKey * 10_000 / 8 }

// less returns by how many per cent a is below b.
func less(a, b float64) float64 { return 100 * (1 - a/b) }

// claims checks the numbers of the documents outside their tables. Mitzenmacher's
// simulations are in the experiment trials.
func claims() []cell {
	const (
		mitz    = "Mitzenmacher, "
		fan     = "Summary Cache, "
		lecture = "Lecture, "
	)
	f, z, delta := falsePositives, sentBits, deltaBits
	half := math.Pow(0.5, math.Ln2)
	var cells []cell
	for _, c := range []claim{
		{mitz + "II-A", "base of f at the best k", "0.6185", half, 0, ""},
		{mitz + "II-B", "% saved at the same f, in the limit", "30", less(math.Ln2, 1), 1, ""},
		{mitz + "III-A", "f at m/n=8, k=6", "0.0216", f(8, 6), 0, ""},
		{mitz + "III-A", "f at m/n=8, k=5", "0.0217", f(8, 5), 0, ""},
		{mitz + "III-A", "f at m/n=14, k=2", "0.0177", f(14, 2), 0, ""},
		{mitz + "III-A", "% by which that is lower", "20", less(f(14, 2), f(8, 6)), 2.5, ""},
		{mitz + "III-A", "bytes at m/n=14, k=2, n=10,000", "9904", bytesOf(z(14, 2)), 0, ""},
		{mitz + "III-A", "f at m/n=16, k=11", "0.000459", f(16, 11), 0, ""},
		{mitz + "III-A", "f at m/n=16, k=6", "0.000935", f(16, 6), 0, ""},
		{mitz + "III-A", "% by which m/n=28, k=4 is lower", "30", less(f(28, 4), f(16, 11)), 2, ""},
		{mitz + "III-A", "% by which m/n=48, k=3 is lower", "50", less(f(48, 3), f(16, 11)), 2, ""},
		{mitz + "III-A", "bytes at m/n=48, k=3, n=10,000", "19787", bytesOf(z(48, 3)), 0, ""},
		{mitz + "III-A", "f at m/n=4, k=3", "0.147", f(4, 3), 0, ""},
		{mitz + "III-A", "f at m/n=7, k=1", "0.133", f(7, 1), 0, ""},
		{mitz + "III-A", "% saved at the same f, least", "5", less(z(12.6, 2), 8), 1, ""},
		{mitz + "III-A", "% saved at the same f, most", "15", less(z(46, 1), 8), 1.5, ""},
		{mitz + "IV", "z/n of the delta at m/n=8, k=5, c=5 %", "1.67", delta(8, 5, 0.05), 0, ""},
		{mitz + "IV", "factor by which m/n=32, k=2 lowers f", "6", f(8, 5) / f(32, 2), 0.2, ""},
		{mitz + "IV", "bytes of the delta at m/n=32, k=2, c=5 %", "2066.5", bytesOf(delta(32, 2, 0.05)), 0,
			"made of Table VI's exchanged cell: 1.6532·10,000/8. The mean of 2090 bytes that was simulated is then 14 bytes " +
				"above theory, as in the other simulations (16 to 19), and not 23.5; trials codes such deltas in the right number"},
		{mitz + "IV", "z/n of the delta at m/n=13, k=2, c=5 %", "1.31", delta(13, 2, 0.05), 0, ""},
		{mitz + "IV", "% saved at about the same f", "20", less(delta(13, 2, 0.05), delta(8, 5, 0.05)), 2, ""},
		{fan + "Figure 4", "% false positives at m/n=10, k=4", "1.2", 100 * f(10, 4), 0, ""},
		{fan + "Figure 4", "% false positives at m/n=10, k=5", "0.9", 100 * f(10, 5), 0, ""},
		{fan + "Figure 4", "best number of hashes at m/n=10", "5", float64(bestInteger(10)), 0,
			fmt.Sprintf("its own table has f=0.00819 at k=7 and 0.00943 at k=5, and ln 2·10 = %.2f", bestHashes(10))},
		{lecture + "3", "base of f at the best k", "0.6185", half, 0, ""},
		{lecture + "4", "factor above the lower bound", "1.44", 1 / math.Ln2, 0, ""},
		{lecture + "8", "memory accesses for f below 1 %", "7", math.Ceil(math.Log2(100)), 0,
			"at the least memory, m/n=9.6; k=2 is enough from m/n=19 on (0.00998 in the table of Summary Cache), and k=1 from 100 on"},
	} {
		cell := cell{table: "text", row: c.where, column: c.what, published: c.printed, computed: c.computed, text: c.note}
		cell.judge()
		if value, _ := c.printed.Float64(); c.about > 0 {
			cell.verdict, cell.text = wrong, "said roughly"
			if cell.agrees = math.Abs(value-c.computed) <= c.about; cell.agrees {
				cell.verdict = nearest
			}
		}
		if cell.verdict == wrong {
			cell.text = fmt.Sprintf("wrong: %s is right; %s", inStyle(c.printed, c.computed), c.note)
		}
		cells = append(cells, cell)
	}
	return cells
}
