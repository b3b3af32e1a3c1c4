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
	held := regexp.MustCompile("^`([a-z/0-9]+)` ((?:`Test[A-Za-z0-9]+`(?:, )?)+)$")
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
		var text []byte
		for _, f := range files {
			more, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			text = append(text, more...)
		}
		for test := range strings.SplitSeq(m[2], ", ") {
			if !strings.Contains(string(text), "\nfunc "+strings.Trim(test, "`")+"(t *testing.T) {") {
				t.Errorf("%s has no %s", m[1], test)
			}
		}
	}
	if rows < 20 {
		t.Errorf("%d rows", rows)
	}
}
