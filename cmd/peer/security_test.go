package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// All tests that the threat model names exist, and each of its promises names one.
func TestThreatModel(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	held := regexp.MustCompile("^`([a-z/]+)` `(Test[A-Za-z]+)`$")
	rows := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 6 || strings.HasPrefix(cells[1], "---") || strings.Contains(line, "| who |") {
			continue
		}
		rows++
		promise, by := strings.TrimSpace(cells[3]), strings.TrimSpace(cells[4])
		m := held.FindStringSubmatch(by)
		switch {
		case (promise == "") != (by == ""):
			t.Errorf("a promise without a test, or a test without a promise: %s", line)
			continue
		case by == "":
			continue
		case m == nil:
			t.Errorf("%q names no directory and test", by)
			continue
		}
		files, _ := filepath.Glob(filepath.Join(root, m[1], "*_test.go"))
		found := false
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			found = found || strings.Contains(string(text), "\nfunc "+m[2]+"(t *testing.T) {")
		}
		if !found {
			t.Errorf("%s has no %s", m[1], m[2])
		}
	}
	if rows < 20 {
		t.Errorf("%d rows", rows)
	}
}
