package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/summarycache/summarycache/sim/lab"
)

func TestFigures(t *testing.T) {
	dir := t.TempDir()
	code, out, errs := call("figures", "--json", "--out", dir)
	if code != 0 {
		t.Fatal(errs)
	}
	var printed struct {
		Command string
		Data    []lab.Figure
	}
	if err := json.Unmarshal([]byte(out), &printed); err != nil || len(printed.Data) != 6 || !strings.HasPrefix(printed.Command, "go run ./sim figures --json") {
		t.Fatalf("figures --json prints %q and %d figures: %v", printed.Command, len(printed.Data), err)
	}
	drawn := printed.Data
	for _, f := range drawn {
		checkFiles(t, filepath.Join(dir, "figures", f.File))
		again, err1 := os.ReadFile(filepath.Join(dir, "figures", f.File+".svg"))
		committed, err2 := os.ReadFile(filepath.Join("figures", f.File+".svg"))
		if err1 != nil || err2 != nil || !bytes.Equal(again, committed) {
			t.Errorf("figures/%s.svg is not what sim figures draws: %v, %v", f.File, err1, err2)
		}
		points, err1 := os.ReadFile(filepath.Join(dir, "figures", f.File+".csv"))
		committed, err2 = os.ReadFile(filepath.Join("figures", f.File+".csv"))
		if err1 != nil || err2 != nil || !bytes.Equal(points, committed) {
			t.Errorf("figures/%s.csv is not what sim figures writes: %v, %v", f.File, err1, err2)
		}
		plot := filepath.Join(t.TempDir(), "a.csv")
		if err := os.WriteFile(plot, points, 0o644); err != nil {
			t.Fatal(err)
		}
		code, _, errs := call("plot", plot)
		drawn, err := os.ReadFile(strings.TrimSuffix(plot, "csv") + "svg")
		if code != 0 || err != nil || !bytes.Equal(drawn, again) {
			t.Errorf("plot of %s.csv is another figure: %d, %s, %v", f.File, code, errs, err)
		}
		for _, c := range f.Curves {
			if len(c.Points) == 0 {
				t.Errorf("%s: curve %q is empty", f.File, c.Name)
			}
		}
	}
	left, _ := filepath.Glob(filepath.Join(dir, "figures", ".*"))
	if all, _ := os.ReadDir(filepath.Join(dir, "figures")); len(left) > 0 || len(all) != 12 {
		t.Errorf("%d files, of which %v are hidden; want 12", len(all), left)
	}

	// A compressed filter never has more false positives than a standard filter of as many
	// bits, and has as many where the standard one is best.
	for i, z := range []float64{8, 16} {
		standard, compressed, best := drawn[i].Curves[0].Points, drawn[i].Curves[1].Points, drawn[i].Curves[3].Points[0]
		for j := range standard {
			if compressed[j].Y > standard[j].Y*(1+1e-6) || compressed[j].Y > best.Y*(1+1e-6) {
				t.Errorf("z/n=%v, k=%v: compressed has f=%v, standard %v, the best standard %v", z, standard[j].X, compressed[j].Y, standard[j].Y, best.Y)
			}
		}
	}
	// The sizes that package arith reaches for real keys are on the curves.
	sizes, deltas := drawn[3].Curves, drawn[4].Curves
	for _, c := range []struct {
		curve, marks []lab.Point
		tolerance    float64 // bits per key: two bytes, and random variation
	}{{sizes[2].Points, sizes[6].Points, 0.03}, {sizes[3].Points, sizes[7].Points, 0.03}, {deltas[2].Points, deltas[7].Points, 0.3}} {
		for _, mark := range c.marks {
			if y := at(c.curve, mark.X); math.Abs(mark.Y-y) > c.tolerance {
				t.Errorf("at %v: coded in %v bits per key, the curve says %v", mark.X, mark.Y, y)
			}
		}
	}
}

// at interpolates a curve, in the logarithm of x.
func at(curve []lab.Point, x float64) float64 {
	i, found := slices.BinarySearchFunc(curve, x, func(p lab.Point, x float64) int {
		switch {
		case p.X < x*(1-1e-9):
			return -1
		case p.X > x*(1+1e-9):
			return 1
		}
		return 0
	})
	if found {
		return curve[i].Y
	}
	a, b := curve[i-1], curve[i]
	return a.Y + (b.Y-a.Y)*math.Log(x/a.X)/math.Log(b.X/a.X)
}

func checkFiles(t *testing.T, path string) {
	t.Helper()
	svg, err := os.ReadFile(path + ".svg")
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%s.svg: %v", path, err)
		}
	}
}

func TestFiguresRefuses(t *testing.T) {
	code, out, errs := call("figures", "--out", filepath.Join(t.TempDir(), "none"))
	if code != 2 || out != "" {
		t.Errorf("figures into no directory: %d, %q, %q", code, out, errs)
	}
	dir := t.TempDir()
	broken := filepath.Join(dir, "b.csv")
	for text, says := range map[string]string{
		"x,y\n1,2\n": "the first line", "# {\"curves\":[{}]}\ncurve,x,y\n1,2,3\n": "row", "# {\"curves\":[{}]}\ncurve,x,y\n0,2\n": "row",
	} {
		if err := os.WriteFile(broken, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if code, _, errs := call("plot", broken); code != 1 || !strings.Contains(errs, says) {
			t.Errorf("plot of %q: %d, %q", text, code, errs)
		}
	}
	for _, args := range [][]string{{"plot"}, {"plot", "a.txt"}} {
		if code, _, errs := call(args...); code != 2 || !strings.Contains(errs, "want one FILE.csv") {
			t.Errorf("%q: %d, %q", args, code, errs)
		}
	}
	os.Remove(broken)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	job := lab.Quiet(1)
	job.Out = dir
	err := runFigures(ctx, job)
	if files, _ := os.ReadDir(dir); !errors.Is(err, context.Canceled) || len(files) > 0 {
		t.Errorf("interrupted figures: %v, and left %v", err, files)
	}
}
