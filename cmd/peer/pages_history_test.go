package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	subject  = regexp.MustCompile("`([a-z][a-z/]*: [^`]+)`")
	measured = regexp.MustCompile(`\d(?:[\d,]*\d)?(?:\.\d+)?(?:e[+-]?\d+)?`)
)

// Each paragraph of the design's history names where its numbers come from, and
// they are there: in the commit of that subject, in the results, or in the page that
// is linked.
func TestHistoryNumbers(t *testing.T) {
	log, err := exec.Command("git", "-C", root, "log", "--format=%s%x00%B%x01").Output()
	if err != nil || strings.Count(string(log), "\x01") < 150 {
		t.Skip("the repository's history is not here, so the page is not compared with it")
	}
	commits := map[string]string{}
	for entry := range strings.SplitSeq(string(log), "\x01") {
		subject, body, _ := strings.Cut(strings.TrimSpace(entry), "\x00")
		commits[subject] = body
	}
	results, err := os.ReadFile(filepath.Join(root, "sim", "RESULTS.md"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	paragraphs := strings.Split(pageOf(t, "sim/HISTORY.md").prose, "\n\n")
	for i, paragraph := range paragraphs {
		if strings.HasPrefix(paragraph, "#") || i < 2 {
			continue
		}
		about, from := paragraph, ""
		if strings.HasPrefix(paragraph, "|") && i+1 < len(paragraphs) {
			about += paragraphs[i+1] // a table's source stands below it
		}
		text := strings.Join(strings.Fields(about), " ")
		for _, m := range subject.FindAllStringSubmatch(text, -1) {
			body, ok := commits[m[1]]
			if !ok {
				t.Errorf("no commit %q", m[1])
			}
			from += " " + body
		}
		if strings.Contains(text, "`go run ./sim ") {
			from += string(results)
		}
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			linked, err := os.ReadFile(filepath.Join(root, "sim", m[1]))
			if err != nil {
				t.Fatal(err)
			}
			from += string(linked)
		}
		if from == "" {
			t.Errorf("nothing is said to measure %q", text)
		}
		known := map[string]bool{}
		for _, number := range measured.FindAllString(from, -1) {
			known[number] = true
		}
		for _, number := range measured.FindAllString(codeSpan.ReplaceAllString(link.ReplaceAllString(text, ""), ""), -1) {
			n++
			if !known[number] {
				t.Errorf("%s is not where it is said to come from: %q", number, text)
			}
		}
	}
	if n < 50 {
		t.Errorf("only %d numbers found", n)
	}
}
