package main

import (
	_ "embed"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/summarycache/summarycache/sim/lab"
)

var _ = experiments.Add(lab.Experiment{
	Name:    "results",
	Args:    "[CHAPTER...]",
	Summary: "runs the experiments of RESULTS.md, or some of them, and writes it below --out",
	Seconds: -1,
	Run:     runResults,
})

// resultsText is the document. Its text before the first chapter, and that above each chapter's
// tables, is written by hand there; it is kept when the tables are made again.
//
//go:embed RESULTS.md
var resultsText string

// A chapter is the part of RESULTS.md about one experiment. It has the tables that the
// experiment prints.
type chapter struct {
	experiment string
	title      string
	shortTrial int // --trials of the short version
}

var chapters = []chapter{
	{"tables", "The tables of the documents", 4000},
	{"trials", "The simulations of Compressed Bloom Filters", 40},
	{"limits", "Limits and conjectures, and counting filters as messages", 0},
	{"figures", "Figures", 0},
	{"systems", "Ways of cooperating", 0},
	{"exchange", "Keeping digests in step", 0},
}

func runResults(job *lab.Job) error {
	if info, err := os.Stat(job.Out); err != nil || !info.IsDir() {
		return lab.Usagef("--out %s: want a directory", job.Out)
	}
	if job.Seed != 1 || job.Trials != 0 {
		return lab.Usagef("RESULTS.md is written with --seed 1, and with the trials that each experiment has by " +
			"default")
	}
	path := filepath.Join(job.Out, "RESULTS.md")
	old, err := os.ReadFile(path)
	if err != nil && len(job.Args) > 0 {
		return fmt.Errorf("no document to replace chapters of: %w", err)
	}
	for _, name := range job.Args {
		if !slices.ContainsFunc(chapters, func(c chapter) bool { return c.experiment == name }) {
			return lab.Usagef("no chapter %q in RESULTS.md", name)
		}
	}
	head, _, _ := strings.Cut(resultsText, "## "+chapters[0].title)
	parts := make([]string, len(chapters))
	for i, c := range chapters {
		parts[i] = c.from(string(old))
	}
	made := job.Table("Chapters", lab.Column{Name: "chapter"}, lab.Column{Name: "tables"}, lab.Column{Name: "rows"})
	left := slices.DeleteFunc(slices.Clone(chapters), func(c chapter) bool {
		return len(job.Args) > 0 && !slices.Contains(job.Args, c.experiment)
	})
	for i, c := range chapters {
		if len(left) == 0 || left[0].experiment != c.experiment {
			continue
		}
		part, err := c.run(job)
		if err == nil {
			err = part.DrawCharts()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.experiment, err)
		}
		var text strings.Builder
		c.write(&text, part)
		parts[i], left = text.String(), left[1:]
		// Write after each chapter: a run that is killed is continued by the names of those that are missing.
		if err := os.WriteFile(path, []byte(head+strings.Join(parts, "")), 0o644); err != nil {
			return err
		}
		rows := 0
		for _, t := range part.Tables {
			rows += len(t.Rows)
		}
		made.Row(c.experiment, len(part.Tables), rows)
	}
	return nil
}

// from returns the chapter's text in the document, or nothing.
func (c chapter) from(document string) string {
	heading := "## " + c.title + "\n"
	_, text, found := strings.Cut(document, "\n"+heading)
	if !found {
		return ""
	}
	if next := strings.Index(text, "\n## "); next >= 0 {
		text = text[:next+1]
	}
	return heading + text
}

// chapterOf is the title of an experiment's chapter, or empty.
func chapterOf(experiment string) string {
	for _, c := range chapters {
		if c.experiment == experiment {
			return c.title
		}
	}
	return ""
}

// words returns the text between the chapter's command and its tables.
func (c chapter) words() string {
	_, text, _ := strings.Cut(c.from(resultsText), "    go run ./sim "+c.experiment+"\n")
	text, _, _ = strings.Cut(text, "\n### ")
	return strings.TrimSpace(text)
}

// run makes the chapter's tables as a part of job.
func (c chapter) run(job *lab.Job) (*lab.Job, error) {
	e, err := experiments.Find(c.experiment)
	if err != nil {
		return nil, err
	}
	part := job.Part(c.experiment)
	if job.Short {
		part.Trials = c.shortTrial
	}
	return part, e.Prepare(flag.NewFlagSet(e.Name, flag.ContinueOnError))(part)
}

func (c chapter) write(w io.Writer, part *lab.Job) {
	fmt.Fprintf(w, "## %s\n\n    go run ./sim %s\n\n%s\n\n", c.title, c.experiment, c.words())
	for _, t := range part.Tables {
		t.WriteMarkdown(w)
	}
}
