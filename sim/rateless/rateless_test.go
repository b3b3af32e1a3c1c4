package main

import (
	"flag"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/summarycache/summarycache/sim/lab"
)

var update = flag.Bool("update", false, "write the table of README.md anew")

// TestReadme runs two changes of each size. The table of README.md, the mean of ten, is near them, but for times.
func TestReadme(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	text, shown, _ := strings.Cut(string(page), "### ")
	job := lab.Quiet(1)
	if !*update {
		job.Trials = 2
	}
	if err := run(job); err != nil {
		t.Fatal(err)
	}
	var again strings.Builder
	job.Tables[0].WriteMarkdown(&again)
	if *update {
		if err := os.WriteFile("README.md", []byte(strings.TrimSpace(text+again.String())+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, got := strings.Split("### "+shown, "\n"), strings.Split(again.String(), "\n")
	for i, line := range want[:min(len(want), 8)] {
		shown, again := strings.Split(strings.Trim(line, "| "), " | "), strings.Split(strings.Trim(got[i], "| "), " | ")
		for j, cell := range shown {
			a, err := strconv.ParseFloat(cell, 64)
			b, err2 := strconv.ParseFloat(again[j], 64)
			exact := err != nil || err2 != nil
			if exact && cell != again[j] || j < 7 && !exact && math.Abs(a-b) > 0.3*a {
				t.Errorf("README.md says %q, and a run %q: %s", cell, again[j], got[i])
			}
		}
	}
}

// TestCalls: the program takes the flags of sim.
func TestCalls(t *testing.T) {
	var out, errs strings.Builder
	if code := call([]string{"--trials", "0"}, &out, &errs); code != 2 || !strings.Contains(errs.String(), "want 1 to") {
		t.Errorf("no trials: %d, %s", code, errs.String())
	}
}

// The coder finds what differs, whichever side has it, with about 1.35 symbols for each of many items.
func TestSketch(t *testing.T) {
	for _, n := range []int{0, 1, 2, 50, 5000} {
		sender, receiver, d := newCoder(), newCoder(), newDecoder()
		for i := range uint64(20_000) {
			v := newItem(i * i)
			if i >= uint64(n/2) {
				receiver.add(v)
			}
			if i < 20_000-uint64(n-n/2) {
				sender.add(v)
			}
		}
		symbols := 0
		for known := false; !known; symbols++ {
			s, own := sender.symbol(), receiver.symbol()
			known = d.add(symbol{s.items ^ own.items, s.hashes ^ own.hashes, s.count - own.count})
		}
		if d.found != n || symbols > 2*n+20 || n == 5000 && symbols > 145*n/100 {
			t.Errorf("%d of %d items found with %d symbols", d.found, n, symbols)
		}
	}
}
