package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/summarycache/summarycache/digest"
)

func TestFigures(t *testing.T) {
	dir := t.TempDir()
	code, out, errs := call("figures", "--json", "--out", dir)
	if code != 0 {
		t.Fatal(errs)
	}
	var drawn []Figure
	if err := json.Unmarshal([]byte(out), &drawn); err != nil || len(drawn) != 6 {
		t.Fatalf("figures --json prints %d figures: %v", len(drawn), err)
	}
	for _, f := range drawn {
		checkFiles(t, filepath.Join(dir, "figures", f.File))
		again, err1 := os.ReadFile(filepath.Join(dir, "figures", f.File+".svg"))
		committed, err2 := os.ReadFile(filepath.Join("figures", f.File+".svg"))
		if err1 != nil || err2 != nil || !bytes.Equal(again, committed) {
			t.Errorf("figures/%s.svg is not what sim figures draws: %v, %v", f.File, err1, err2)
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
	// The figure of structures shows what was counted, at the rate of their chapter.
	keys, _ := rivalSets(testJob(1).Rand(31), structureKeys, structureKeys*rivalShare)
	for _, c := range drawn[5].Curves {
		for _, r := range rivals {
			if built, err := r.build(rivalBits, keys, nil); r.name == c.Name && (err != nil || math.Abs(at(c.Points, rateOf(rivalBits))+rivalBits-float64(built.message)/structureKeys) > 0.05) {
				t.Errorf("%s: %v above the bound at f = 2^-13, as a message %v in all: %v", c.Name, at(c.Points, rateOf(rivalBits)), float64(built.message)/structureKeys, err)
			}
		}
	}
	// The sizes that package arith reaches for real keys are on the curves.
	sizes, deltas := drawn[3].Curves, drawn[4].Curves
	for _, c := range []struct {
		curve, marks []Point
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
func at(curve []Point, x float64) float64 {
	i, found := slices.BinarySearchFunc(curve, x, func(p Point, x float64) int {
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
	f, err := os.Open(path + ".png")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	picture, err := png.Decode(f)
	if err != nil {
		t.Fatalf("%s.png: %v", path, err)
	}
	colors := map[[3]uint32]bool{}
	for y := 0; y < picture.Bounds().Dy(); y += 3 {
		for x := 0; x < picture.Bounds().Dx(); x += 3 {
			r, g, b, _ := picture.At(x, y).RGBA()
			colors[[3]uint32{r, g, b}] = true
		}
	}
	if len(colors) < 20 {
		t.Errorf("%s.png has %d colours: is it empty?", path, len(colors))
	}
}

func TestFiguresRefuses(t *testing.T) {
	code, out, errs := call("figures", "--out", filepath.Join(t.TempDir(), "none"))
	if code != 2 || out != "" {
		t.Errorf("figures into no directory: %d, %q, %q", code, out, errs)
	}
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	job := testJob(1)
	job.Out = dir
	err := runFigures(ctx, job)
	if files, _ := os.ReadDir(dir); !errors.Is(err, context.Canceled) || len(files) > 0 {
		t.Errorf("interrupted figures: %v, and left %v", err, files)
	}
}

func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.txt")
	for _, text := range []string{"one", "another"} {
		if err := writeFile(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("writeFile(%q) leaves %q, %v", text, got, err)
		}
	}
	if files, _ := os.ReadDir(filepath.Dir(path)); len(files) != 1 {
		t.Errorf("writeFile leaves %v", files)
	}
	if err := writeFile(filepath.Join(path, "b"), nil); err == nil {
		t.Error("writeFile below a file succeeds")
	}
}

// TestRiceBits codes a set in a Rice code, bit by bit.
func TestRiceBits(t *testing.T) {
	const n, f = 4_000, 0.003
	m := uint64(arrayAt(f, 1) * n)
	rng := testJob(2).source(0)
	set := map[uint64]bool{}
	for range n {
		set[below(rng, m)] = true
	}
	sorted := slices.Sorted(maps.Keys(set))
	least := math.Inf(1)
	for low := range 20 {
		bits, next := uint64(0), uint64(0)
		for _, p := range sorted {
			bits += (p-next)>>low + 1 + uint64(low)
			next = p + 1
		}
		least = min(least, float64(bits)/n)
	}
	if got := riceBits(f); math.Abs(got/least-1) > 0.01 {
		t.Errorf("riceBits(%v) = %v, and such a set took %v", f, got, least)
	}
}

// TestGivenBits compares the formula with the entropies of the two sets that a delta is
// made of.
func TestGivenBits(t *testing.T) {
	const n, mn, k, c = 10_000, 30, 2, 0.1
	rng := testJob(4).source(0)
	held, keys, base, err := filled(digest.Geometry{Bits: mn * n, Hashes: k}, rng, n)
	if err != nil {
		t.Fatal(err)
	}
	replaceKeys(held, rng, keys[:int(c*n)])
	next, d := held.AdvanceDelta()
	old, is := base.Ones(), next.Ones()
	clears := (uint64(d.Len()) + old - is) / 2
	bits := log2Choose(mn*n-old, uint64(d.Len())-clears) + log2Choose(old, clears)
	if want := givenBits(mn, k, c) * n; math.Abs(bits/want-1) > 0.02 {
		t.Errorf("givenBits says %v bits, the sets have %v", want, bits)
	}
}
