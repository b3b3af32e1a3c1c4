package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/summarycache/summarycache/sim/lab"
)

var _ = experiments.Add(lab.Experiment{
	Name:    "figures",
	Summary: "draws the documents' figures and ours, as SVG and CSV, into figures/ below --out",
	Writes:  true,
	Seconds: 5,
	Run:     runFigures,
})

func runFigures(ctx context.Context, job *lab.Job) error {
	if _, err := os.Stat(job.Out); err != nil {
		return lab.Usagef("--out %s: %w", job.Out, err)
	}
	figures, err := allFigures(ctx, job)
	if err != nil {
		return err
	}
	dir := filepath.Join(job.Out, "figures")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	table := job.Table("Figures", lab.Column{Name: "file"}, lab.Column{Name: "title"}, lab.Column{Name: "curves"})
	for i := range figures {
		f := &figures[i]
		f.Command = fmt.Sprintf("go run ./sim figures --seed %d", job.Seed)
		if err := writeFigure(ctx, filepath.Join(dir, f.File), *f, true); err != nil {
			return err
		}
		table.Row("figures/"+f.File, f.Title, len(f.Curves))
	}
	table.Note("Each as .svg and .csv, which sim plot draws; --json prints the points, too.")
	job.JSON = figures
	return nil
}

var _ = experiments.Add(lab.Experiment{
	Name:    "plot",
	Args:    "FILE.csv",
	Summary: "draws the CSV of a figure as FILE.svg",
	Writes:  true,
	Run: func(ctx context.Context, job *lab.Job) error {
		if len(job.Args) != 1 || filepath.Ext(job.Args[0]) != ".csv" {
			return lab.Usagef("want one FILE.csv, not %q", job.Args)
		}
		text, err := os.ReadFile(job.Args[0])
		if err != nil {
			return err
		}
		f, err := lab.ReadFigure(string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", job.Args[0], err)
		}
		return writeFigure(ctx, strings.TrimSuffix(job.Args[0], ".csv"), f, false)
	},
})

// writeFigure writes complete files or, if ctx has ended, none.
func writeFigure(ctx context.Context, path string, f lab.Figure, withPoints bool) error {
	svg, err := f.Draw()
	if err = cmp.Or(err, ctx.Err()); err == nil {
		err = lab.WriteFile(path+".svg", svg)
	}
	if err == nil && withPoints {
		err = lab.WriteFile(path+".csv", f.CSV())
	}
	return err
}

// allFigures computes every curve.
func allFigures(ctx context.Context, job *lab.Job) (all []lab.Figure, err error) {
	for _, room := range rooms {
		for _, make := range room.Figures {
			f, err := make(ctx, job)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f.File, err)
			}
			all = append(all, f)
		}
	}
	return all, nil
}
