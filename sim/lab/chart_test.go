package lab

import (
	"crypto/sha256"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestAxis(t *testing.T) {
	for _, c := range []struct {
		values []float64
		log    bool
		ticks  []float64
		at     map[float64]float64 // of places from 0 to 100
	}{
		{[]float64{1, 10}, false, []float64{0, 2, 4, 6, 8, 10}, map[float64]float64{0: 0, 10: 100, 2.5: 25}},
		{[]float64{0, 350}, false, []float64{0, 50, 100, 150, 200, 250, 300, 350}, map[float64]float64{175: 50}},
		{[]float64{-1, 1}, false, []float64{-1, -0.5, 0, 0.5, 1}, map[float64]float64{0: 50}},
		{[]float64{3, math.NaN(), 5000}, true, []float64{1, 10, 100, 1000, 10000}, map[float64]float64{1: 0, 100: 50, 10000: 100}},
		{[]float64{0.001, 1}, true, []float64{0.001, 0.01, 0.1, 1}, map[float64]float64{0.001: 0}},
		{[]float64{0, 1000}, false, []float64{0, 200, 400, 600, 800, 1000}, nil},
	} {
		a := newAxis(c.values, 0, 100)
		same := len(a.ticks) == len(c.ticks)
		for i := range min(len(a.ticks), len(c.ticks)) {
			same = same && math.Abs(a.ticks[i]-c.ticks[i]) <= 1e-9*math.Abs(c.ticks[i])
		}
		if a.log != c.log || !same {
			t.Errorf("newAxis(%v) = log %v, %v; want %v, %v", c.values, a.log, a.ticks, c.log, c.ticks)
		}
		for v, want := range c.at {
			if got := a.at(v); math.Abs(got-want) > 1e-6 {
				t.Errorf("newAxis(%v).at(%v) = %v, want %v", c.values, v, got, want)
			}
		}
	}
}

// A chart is XML, names its table, and has each value where it belongs.
func TestDraw(t *testing.T) {
	table := &Table{Title: "a < b & c", Columns: []Column{{Name: "x"}, {Name: "unused"}, {Name: "line", Head: "a line"}, {Name: "points", Head: "<points>"}}}
	table.Row(0, 999, 1.0, nil)
	table.Row(5, 999, nil, Measure{Value: 2})
	table.Row(10, 999, 4.0, 3.0)
	table.Chart = &Chart{File: "f", X: "x", Y: "y", Lines: []string{"line"}, Marks: []string{"points"}}
	svg := table.Draw()
	var texts []string
	paths, d := 0, xml.NewDecoder(strings.NewReader(string(svg)))
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("%s: %v", svg, err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if token.Name.Local == "path" {
				paths++
			}
		case xml.CharData:
			if s := strings.TrimSpace(string(token)); s != "" {
				texts = append(texts, s)
			}
		}
	}
	want := []string{"a < b & c", fmt.Sprintf("SHA-256 of the table's CSV: %x", sha256.Sum256(table.csv())), "a < b & c", "0", "2", "4", "6", "8", "10", "0", "1", "2", "3", "4", "x", "y", "a line", "<points>"}
	if !reflect.DeepEqual(texts, want) {
		t.Errorf("texts %q, want %q", texts, want)
	}
	if paths != 6+5+2+2+1 { // ticks, a line and two points, and the legend
		t.Errorf("%d paths, want 16", paths)
	}
	// The line goes from (0, 1) to (10, 4), past the row without a value: y is 480 at 0 and 50 at 4.
	if line := "M110.0 372.5L870.0 50.0\""; !strings.Contains(string(svg), line) {
		t.Errorf("no %s in %s", line, svg)
	}
	changed := table.Draw()
	table.Rows[0][1] = 998 // not drawn, but it is another table
	if reflect.DeepEqual(table.Draw(), changed) {
		t.Error("a chart does not tell its table from another one")
	}
}
