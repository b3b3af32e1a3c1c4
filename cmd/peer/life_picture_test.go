//go:build linux

package main

import (
	"encoding/csv"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// lifePanels are the charts of the picture, from top to bottom.
var lifePanels = []struct {
	label  string
	fields []string // of lifeSample
	log    bool
}{
	{"memory, MiB", []string{"ResidentMiB", "HeapMiB"}, false},
	{"number", []string{"Goroutines", "Files"}, false},
	{"answers, ms", []string{"Median", "P99"}, true},
	{"digest, %", []string{"FalsePositives", "Promised"}, false},
	{"objects", []string{"Objects"}, false},
}

// writeLife writes the samples to life.csv, and a picture of them to life.svg.
func writeLife(dir string, samples []lifeSample) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := writeLifeTable(filepath.Join(dir, "life.csv"), samples); err != nil {
		return err
	}
	return drawLife(filepath.Join(dir, "life.svg"), samples)
}

func writeLifeTable(path string, samples []lifeSample) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := csv.NewWriter(f)
	kind := reflect.TypeFor[lifeSample]()
	var head []string
	for i := range kind.NumField() {
		head = append(head, kind.Field(i).Name)
	}
	w.Write(head)
	for _, s := range samples {
		var row []string
		for i := range kind.NumField() {
			row = append(row, strconv.FormatFloat(reflect.ValueOf(s).Field(i).Float(), 'g', 6, 64))
		}
		w.Write(row)
	}
	w.Flush()
	return w.Error()
}

// drawLife draws the panels over the turnovers of the store.
func drawLife(path string, samples []lifeSample) error {
	const width, height = 20 * vg.Centimeter, 5 * vg.Centimeter
	canvas := vgsvg.New(width, vg.Length(len(lifePanels))*height)
	tiles := draw.Tiles{Rows: len(lifePanels), Cols: 1, PadX: vg.Millimeter, PadY: vg.Millimeter, PadTop: vg.Millimeter, PadRight: 3 * vg.Millimeter}
	rows := make([][]*plot.Plot, len(lifePanels))
	for i, panel := range lifePanels {
		p := plot.New()
		p.Y.Label.Text = panel.label
		if i == len(lifePanels)-1 {
			p.X.Label.Text = "turnovers of the store"
		}
		p.Legend.Top = true
		p.Add(plotter.NewGrid())
		for k, field := range panel.fields {
			var points plotter.XYs
			for _, s := range samples {
				if y := reflect.ValueOf(s).FieldByName(field).Float(); y > 0 || !panel.log {
					points = append(points, plotter.XY{X: s.Turns, Y: y})
				}
			}
			line, err := plotter.NewLine(points)
			if err != nil {
				return fmt.Errorf("%s: %w", field, err)
			}
			line.Color = []color.Color{color.RGBA{R: 0x1f, G: 0x5f, B: 0xa8, A: 0xff}, color.RGBA{R: 0xc8, G: 0x5a, B: 0x11, A: 0xff}}[k]
			p.Add(line)
			p.Legend.Add(field, line)
		}
		if panel.log {
			p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
		} else {
			p.Y.Min = 0
		}
		rows[i] = []*plot.Plot{p}
	}
	cells := plot.Align(rows, tiles, draw.New(canvas))
	for i := range rows {
		rows[i][0].Draw(cells[i][0])
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = canvas.WriteTo(f)
	return err
}

// The picture can be drawn from samples.
func TestLifePicture(t *testing.T) {
	dir := t.TempDir()
	var samples []lifeSample
	for i := range 100 {
		samples = append(samples, lifeSample{Seconds: float64(i), Turns: float64(i) / 5, ResidentMiB: 50, HeapMiB: 20, Goroutines: 30, Files: 20,
			Median: 0.5, P99: float64(i % 7), FalsePositives: 0.1, Promised: 0.1, Objects: 4000})
	}
	if err := writeLife(dir, samples); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"life.csv", "life.svg"} {
		if st, err := os.Stat(filepath.Join(dir, name)); err != nil || st.Size() < 2000 {
			t.Errorf("%s: %v, %v", name, st, err)
		}
	}
}
