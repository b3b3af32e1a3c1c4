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
	ran      = regexp.MustCompile("`go run ./sim ([a-z]+)`((?:[:,] `[^`]+`)*)") // and the rows named after it
	measured = regexp.MustCompile(`\d(?:[\d,]*\d)?(?:\.\d+)?(?:e[+-]?\d+)?`)
)

// Each paragraph of the design's history names the source of its numbers, and they are there: in
// the commit with that subject, in the named rows of an experiment's tables or in the text about
// them, or in the linked page.
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
		for _, m := range ran.FindAllStringSubmatch(text, -1) {
			said, rows := chapterOf(string(results), m[1])
			if said == "" {
				t.Errorf("RESULTS.md has no chapter of %s", m[1])
			}
			from += " " + said
			for _, name := range codeSpan.FindAllStringSubmatch(m[2], -1) {
				found := 0
				for _, row := range rows {
					if strings.HasPrefix(row+" / ", name[1]+" / ") {
						from, found = from+" "+row, found+1
					}
				}
				if found != 1 {
					t.Errorf("%s has %d rows %q", m[1], found, name[1])
				}
			}
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
				t.Errorf("%s is not where it is said to come from: %.200q", number, text)
			}
		}
	}
	if n < 50 {
		t.Errorf("only %d numbers found", n)
	}
}

// chapterOf returns the text of RESULTS.md about an experiment and, separately, the rows of its
// tables, with " / " between cells.
func chapterOf(results, experiment string) (said string, rows []string) {
	for chapter := range strings.SplitSeq(results, "\n## ") {
		if !strings.Contains(chapter, "\n    go run ./sim "+experiment+"\n") {
			continue
		}
		for line := range strings.Lines(chapter) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "| ") {
				rows = append(rows, strings.ReplaceAll(strings.Trim(line, "| "), " | ", " / "))
			} else {
				said += line + "\n"
			}
		}
	}
	return said, rows
}
