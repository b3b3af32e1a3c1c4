package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/summarycache/summarycache/sim/lab"
)

var _ = experiments.Add(lab.Experiment{
	Name:    "figures",
	Summary: "draws the documents' figures and ours, as SVG and PNG, into figures/ below --out",
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
	for _, f := range figures {
		svg, png, err := f.Draw()
		if err != nil {
			return err
		}
		// An interrupt leaves only complete files.
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := lab.WriteFile(filepath.Join(dir, f.File+".svg"), svg); err != nil {
			return err
		}
		if err := lab.WriteFile(filepath.Join(dir, f.File+".png"), png); err != nil {
			return err
		}
		table.Row("figures/"+f.File, f.Title, len(f.Curves))
	}
	table.Note("Each as .svg and .png; --json prints the points.")
	job.JSON = figures
	return nil
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
