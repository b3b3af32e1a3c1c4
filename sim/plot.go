package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/summarycache/summarycache/sim/lab"
)

var _ = experiments.Add(lab.Experiment{
	Name:    "plot",
	Args:    "FILE.csv",
	Summary: "draws the tables of FILE.csv, which sim printed with --csv, as FILE-1.svg and so on",
	Run: func(job *lab.Job) error {
		if len(job.Args) != 1 || filepath.Ext(job.Args[0]) != ".csv" {
			return lab.Usagef("want one FILE.csv, not %q", job.Args)
		}
		text, err := os.ReadFile(job.Args[0])
		if err != nil {
			return err
		}
		tables, err := lab.ReadTables(string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", job.Args[0], err)
		}
		drawn := job.Table("Drawn", lab.Column{Name: "file"}, lab.Column{Name: "title"}, lab.Column{Name: "curves"})
		for i, t := range tables {
			if t.Chart == nil {
				drawn.Note("%s: the first column or all others have no numbers, so there is nothing to draw.", t.Title)
				continue
			}
			path := fmt.Sprintf("%s-%d.svg", strings.TrimSuffix(job.Args[0], ".csv"), i+1)
			if err := os.WriteFile(path, t.Draw(), 0o644); err != nil {
				return err
			}
			drawn.Row(path, t.Title, len(t.Chart.Lines))
		}
		return nil
	},
})
