package lab

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// A Point is a point of a curve.
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// A Curve is a line of a figure or, with Marks, a set of points.
type Curve struct {
	Name   string  `json:"name"`
	Points []Point `json:"points"`
	Marks  bool    `json:"marks,omitempty"` // drawn as points
	With   int     `json:"with,omitempty"`  // 1 + the index of the curve whose colour it shares
}

// A Figure is drawn as one SVG.
type Figure struct {
	Command string  `json:"command,omitempty"` // that made it
	File    string  `json:"file"`              // without extension
	Title   string  `json:"title"`
	X       Axis    `json:"x"`
	Y       Axis    `json:"y"`
	Curves  []Curve `json:"curves"`
}

// An Axis runs from Min to Max; on a logarithmic one both are above zero.
type Axis struct {
	Label   string    `json:"label"`
	Min     float64   `json:"min"`
	Max     float64   `json:"max"`
	Log     bool      `json:"log,omitempty"`
	Ticks   []float64 `json:"ticks,omitempty"` // labelled
	Minor   []float64 `json:"minor,omitempty"`
	Percent bool      `json:"percent,omitempty"` // ticks are shares, labelled in per cent
}

// The palette of Okabe and Ito works with every kind of colour vision. The dashes
// differ too, for print in grey.
var (
	palette = []color.RGBA{
		{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255},
		{230, 159, 0, 255}, {86, 180, 233, 255}, {0, 0, 0, 255},
	}
	dashes = [][]vg.Length{
		nil, {6, 3}, {2, 2}, {8, 3, 2, 3}, {4, 2}, {10, 4}, {1, 2},
	}
	gridColor = color.RGBA{225, 225, 225, 255}
	glyphs    = []draw.GlyphDrawer{
		draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.RingGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.CrossGlyph{},
	}
)

const (
	figureWidth  = 17 * vg.Centimeter
	figureHeight = 11 * vg.Centimeter // without the legend
	figureEdge   = 8                  // points left free on all sides
)

// CSV returns the figure's points, a row each, after a line with all else of it in JSON.
func (f Figure) CSV() []byte {
	head := f
	head.Curves = slices.Clone(f.Curves)
	for i := range head.Curves {
		head.Curves[i].Points = nil
	}
	line, _ := json.Marshal(head)
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\ncurve,x,y\n", line)
	for i, c := range f.Curves {
		for _, p := range c.Points {
			fmt.Fprintf(&b, "%d,%v,%v\n", i, p.X, p.Y)
		}
	}
	return b.Bytes()
}

// ReadFigure reads what CSV returns.
func ReadFigure(text string) (f Figure, err error) {
	head, rows, _ := strings.Cut(text, "\n")
	if err := json.Unmarshal([]byte(strings.TrimPrefix(head, "# ")), &f); err != nil {
		return f, fmt.Errorf("the first line is not that of a figure's CSV: %w", err)
	}
	rows = strings.TrimPrefix(rows, "curve,x,y\n")
	for row := range strings.Lines(rows) {
		var curve int
		var p Point
		if _, err := fmt.Sscanf(row, "%d,%g,%g\n", &curve, &p.X, &p.Y); err != nil || curve < 0 || curve >= len(f.Curves) {
			return f, fmt.Errorf("row %q: want the number of a curve, x and y", row)
		}
		f.Curves[curve].Points = append(f.Curves[curve].Points, p)
	}
	return f, nil
}

// Draw returns the figure as SVG.
func (f Figure) Draw() (svg []byte, err error) {
	p, legend, err := f.plot()
	if err != nil {
		return nil, fmt.Errorf("figure %s: %w", f.File, err)
	}
	measuring := draw.New(vgsvg.New(figureWidth, figureHeight))
	legendHeight := legend.Rectangle(measuring).Size().Y
	vector := vgsvg.New(figureWidth, figureHeight+legendHeight)
	c := draw.Crop(draw.New(vector), figureEdge, -figureEdge, figureEdge, -figureEdge)
	legend.Draw(c)
	f.drawPlot(p, draw.Crop(c, 0, 0, legendHeight+figureEdge, 0))
	var b bytes.Buffer
	if _, err := vector.WriteTo(&b); err != nil {
		return nil, err
	}
	// If the typeface is not installed, another one of the same widths is used.
	return bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif")), nil
}

// drawPlot draws the plot and the labels of its axes. The plot library can draw the labels, but
// puts the space for them in the wrong place if an axis is logarithmic.
func (f Figure) drawPlot(p *plot.Plot, c draw.Canvas) {
	label := sans(11)
	label.XAlign, label.YAlign = draw.XCenter, draw.YTop
	const space = 16 // for a label
	data := draw.Crop(c, space, 0, space, 0)
	p.Draw(data)
	inner := p.DataCanvas(data)
	c.FillText(label, vg.Point{X: inner.Center().X, Y: c.Min.Y + space - 4}, f.X.Label)
	label.Rotation = math.Pi / 2
	c.FillText(label, vg.Point{X: c.Min.X, Y: inner.Center().Y}, f.Y.Label)
}

func sans(size vg.Length) draw.TextStyle {
	return draw.TextStyle{
		Color:   color.Black,
		Font:    font.Font{Typeface: "Liberation", Variant: "Sans", Size: size},
		Handler: plot.DefaultTextHandler,
	}
}

// plot makes the plot, and the legend below it.
func (f Figure) plot() (p *plot.Plot, legend plot.Legend, err error) {
	p, legend = plot.New(), plot.NewLegend()
	p.Title.TextStyle.Font, p.X.Tick.Label.Font, p.Y.Tick.Label.Font = sans(13).Font, sans(10).Font, sans(10).Font
	legend.TextStyle.Font = sans(10).Font
	legend.Left, legend.ThumbnailWidth, legend.Padding = true, 30, 3
	p.Title.Text, p.Title.Padding = f.Title, 8
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = gridColor, gridColor
	p.Add(grid)
	for i, c := range f.Curves {
		thumb, err := f.addCurve(p, i, c)
		if err != nil {
			return nil, legend, fmt.Errorf("curve %q: %w", c.Name, err)
		}
		if c.Name != "" {
			legend.Add(c.Name, thumb)
		}
	}
	f.X.apply(&p.X) // after the curves, which change the ranges
	f.Y.apply(&p.Y)
	return p, legend, nil
}

// addCurve draws the part of a curve that is within the axes.
func (f Figure) addCurve(p *plot.Plot, i int, c Curve) (plot.Thumbnailer, error) {
	var points plotter.XYs
	for _, q := range c.Points {
		if f.X.Min <= q.X && q.X <= f.X.Max && f.Y.Min <= q.Y && q.Y <= f.Y.Max {
			points = append(points, plotter.XY(q))
		}
	}
	style := i
	if c.With > 0 {
		style = c.With - 1
	}
	style %= len(palette)
	if c.Marks {
		scatter, err := plotter.NewScatter(points)
		if err != nil {
			return nil, err
		}
		scatter.GlyphStyle = draw.GlyphStyle{Color: palette[style], Radius: 3, Shape: glyphs[style]}
		p.Add(scatter)
		return scatter, nil
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return nil, err
	}
	line.LineStyle = draw.LineStyle{Color: palette[style], Width: 1.6, Dashes: dashes[style]}
	p.Add(line)
	return line, nil
}

func (a Axis) apply(axis *plot.Axis) {
	axis.Min, axis.Max = a.Min, a.Max
	if a.Log {
		axis.Scale = plot.LogScale{}
	}
	axis.Padding = 0
	var ticks plot.ConstantTicks
	for _, v := range a.Ticks {
		label := strconv.FormatFloat(v, 'g', -1, 64)
		if a.Percent {
			label = strconv.FormatFloat(Round(100*v, 6), 'f', -1, 64) + " %"
		}
		ticks = append(ticks, plot.Tick{Value: v, Label: label})
	}
	for _, v := range a.Minor {
		ticks = append(ticks, plot.Tick{Value: v})
	}
	axis.Tick.Marker = ticks
}

// Decades labels the powers of ten of a logarithmic axis.
func (a Axis) Decades() Axis {
	for e := math.Floor(math.Log10(a.Min)); e <= math.Ceil(math.Log10(a.Max)); e++ {
		for d := 1.0; d < 10; d++ {
			v := Round(d*math.Pow(10, e), 6)
			switch {
			case v < a.Min*(1-1e-9) || v > a.Max*(1+1e-9):
			case d == 1:
				a.Ticks = append(a.Ticks, v)
			default:
				a.Minor = append(a.Minor, v)
			}
		}
	}
	return a
}

// Every labels the multiples of step on a linear axis.
func (a Axis) Every(step float64) Axis {
	for i := math.Ceil(a.Min / step); i*step <= a.Max*(1+1e-9); i++ {
		a.Ticks = append(a.Ticks, i*step)
	}
	return a
}

// Sample evaluates y at n places from low to high, evenly spaced on the axis.
func (a Axis) Sample(n int, low, high float64, y func(x float64) float64) []Point {
	var points []Point
	for i := range n {
		t := float64(i) / float64(n-1)
		x := low + t*(high-low)
		if a.Log {
			x = low * math.Pow(high/low, t)
		}
		if v := y(x); !math.IsNaN(v) && !math.IsInf(v, 0) {
			points = append(points, Point{Round(x, 7), Round(v, 7)})
		}
	}
	return points
}
