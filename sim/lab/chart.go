package lab

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// A Chart says how to draw a table: its first column against others. An axis is logarithmic if its values are above
// zero and span more than two decades.
type Chart struct {
	File  string   // the SVG's name, without extension
	X, Y  string   // labels of the axes
	Lines []string // the names of columns that are drawn as lines
	Marks []string // and as points
}

// The colours of Okabe and Ito, which every kind of colour vision tells apart. Dashes and shapes differ too, for print
// in grey.
var (
	palette = [...]string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#56b4e9", "#e69f00"}
	dashes  = [...]string{"1 0", "12 5", "3 5", "14 4 3 4", "7 4", "20 6", "2 8"}
	shapes  = [...]string{
		"M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0", "M-5-5h10v10h-10z", "M0-6l6 11h-12z", "M-6-6l12 12m0-12l-12 12",
	}
)

// A chart is 900 wide and 560 high above its legend, so that its letters can be read at half the size.
const chartLeft, chartRight, chartTop, chartBottom, legendRow = 110, 870, 50, 480, 28

// Draw returns the table as SVG, with the SHA-256 of its CSV.
func (t *Table) Draw() []byte {
	c := t.Chart
	names := append(slices.Clone(c.Lines), c.Marks...)
	var xs, all []float64
	curves := make([][]float64, len(names))
	for _, row := range t.Rows {
		xs = append(xs, cellValue(row[0]))
		for i, name := range names {
			v := cellValue(row[t.column(name)])
			curves[i], all = append(curves[i], v), append(all, v)
		}
	}
	x, y := newAxis(xs, chartLeft, chartRight), newAxis(all, chartBottom, chartTop)
	var b bytes.Buffer
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 900 %d\"", 550+legendRow*len(names))
	b.WriteString(" font-family=\"sans-serif\" font-size=\"18\">\n")
	text := func(x, y float64, anchor, more, s string) {
		s = html.EscapeString(s)
		fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s>%s</text>\n", x, y, anchor, more, s)
	}
	sum := sha256.Sum256(t.csv())
	fmt.Fprintf(&b, "<title>%s</title>\n<desc>SHA-256 of the table's CSV: %x</desc>\n", html.EscapeString(t.Title), sum)
	b.WriteString("<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n")
	text(450, 28, "middle", "", t.Title)
	for _, v := range x.ticks {
		fmt.Fprintf(&b, "<path d=\"M%.1f %dV%d\" stroke=\"#ddd\"/>\n", x.at(v), chartTop, chartBottom)
		text(x.at(v), chartBottom+24, "middle", "", label(v))
	}
	for _, v := range y.ticks {
		fmt.Fprintf(&b, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>\n", chartLeft, y.at(v), chartRight)
		text(chartLeft-10, y.at(v)+6, "end", "", label(v))
	}
	text((chartLeft+chartRight)/2, chartBottom+52, "middle", "", c.X)
	text(0, 0, "middle", fmt.Sprintf(" transform=\"translate(24 %d)rotate(-90)\"", (chartTop+chartBottom)/2), c.Y)
	for i, name := range names {
		colour, dash, shape := palette[i%len(palette)], dashes[i%len(dashes)], shapes[i%len(shapes)]
		marks, below := i >= len(c.Lines), float64(550+legendRow*i)
		line := func(d string) { // a curve, and its piece in the legend
			fmt.Fprintf(&b, "<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2.5\"", d, colour)
			fmt.Fprintf(&b, " stroke-dasharray=\"%s\"/>\n", dash)
		}
		mark := func(x, y float64) {
			fmt.Fprintf(&b, "<path transform=\"translate(%.1f %.1f)\" d=\"%s\" fill=\"none\"", x, y, shape)
			fmt.Fprintf(&b, " stroke=\"%s\" stroke-width=\"2\"/>\n", colour)
		}
		var d []byte
		for j, v := range curves[i] {
			if math.IsNaN(v) {
				continue
			}
			if marks {
				mark(x.at(xs[j]), y.at(v))
			}
			d = fmt.Appendf(d, "%c%.1f %.1f", "LM"[btoi(len(d) == 0)], x.at(xs[j]), y.at(v))
		}
		if marks {
			mark(chartLeft+30, below)
		} else {
			line(string(d))
			line(fmt.Sprintf("M%d %.1fh60", chartLeft, below))
		}
		text(chartLeft+75, below+6, "start", "", t.Columns[t.column(name)].Heading())
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// column returns the place of a column.
func (t *Table) column(name string) int {
	return slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name })
}

// cellValue returns a cell's value, NaN if it is empty.
func cellValue(cell any) float64 {
	if m, ok := cell.(Measure); ok {
		return m.Value
	}
	v, err := strconv.ParseFloat(fmt.Sprint(cell), 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

// label writes a number at a tick.
func label(v float64) string { return strconv.FormatFloat(Round(v, 6), 'g', -1, 64) }

// An axis maps values to places from low to high.
type axis struct {
	log       bool
	min, max  float64
	low, high float64
	ticks     []float64
}

// newAxis makes an axis for values, of which NaN does not count.
func newAxis(values []float64, low, high float64) *axis {
	a := &axis{min: math.Inf(1), max: math.Inf(-1), low: low, high: high}
	for _, v := range values {
		if !math.IsNaN(v) {
			a.min, a.max = min(a.min, v), max(a.max, v)
		}
	}
	if a.min > 0 && a.max/a.min > 100 {
		a.log = true
		first, last := math.Floor(math.Log10(a.min)+1e-9), math.Ceil(math.Log10(a.max)-1e-9)
		for e := first; e <= last; e++ {
			a.ticks = append(a.ticks, math.Pow(10, e))
		}
		a.min, a.max = a.ticks[0], a.ticks[len(a.ticks)-1]
		return a
	}
	a.min = min(0, a.min)
	ten := math.Pow(10, math.Floor(math.Log10(max(a.max-a.min, 1e-300))))
	step := ten
	for _, parts := range [...]float64{2, 5} {
		if (a.max-a.min)/step < 4 {
			step = ten / parts
		}
	}
	a.min, a.max = math.Floor(a.min/step)*step, math.Ceil(a.max/step)*step
	for i := 0.0; a.min+i*step <= a.max+step/2; i++ {
		a.ticks = append(a.ticks, a.min+i*step)
	}
	return a
}

// at returns the place of a value.
func (a *axis) at(v float64) float64 {
	t := (v - a.min) / (a.max - a.min)
	if a.log {
		t = math.Log(v/a.min) / math.Log(a.max/a.min)
	}
	return a.low + t*(a.high-a.low)
}

// DrawCharts writes the tables that have a chart into figures/ below j.Out.
func (j *Job) DrawCharts() error {
	for _, t := range j.Tables {
		if t.Chart == nil {
			continue
		}
		if err := os.MkdirAll(filepath.Join(j.Out, "figures"), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(j.Out, "figures", t.Chart.File+".svg"), t.Draw(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
