package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

var _ = experiments.add(Experiment{
	Name:    "figures",
	Summary: "draws the documents' figures and ours, as SVG and PNG, into figures/ below --out",
	Writes:  true,
	Seconds: 5,
	Run:     runFigures,
})

func runFigures(ctx context.Context, job *Job) error {
	if _, err := os.Stat(job.Out); err != nil {
		return usagef("--out %s: %w", job.Out, err)
	}
	figures, err := allFigures(ctx, job)
	if err != nil {
		return err
	}
	dir := filepath.Join(job.Out, "figures")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	table := job.Table("Figures", Column{Name: "file"}, Column{Name: "title"}, Column{Name: "curves"})
	for _, f := range figures {
		svg, png, err := f.draw()
		if err != nil {
			return err
		}
		// An interrupt leaves only complete files.
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := writeFile(filepath.Join(dir, f.File+".svg"), svg); err != nil {
			return err
		}
		if err := writeFile(filepath.Join(dir, f.File+".png"), png); err != nil {
			return err
		}
		table.Row("figures/"+f.File, f.Title, len(f.Curves))
	}
	table.Note("Each as .svg and .png; --json prints the points.")
	job.JSON = figures
	return nil
}

// allFigures computes every curve.
func allFigures(ctx context.Context, job *Job) ([]Figure, error) {
	sizes, err := sizesFigure(ctx, job)
	if err != nil {
		return nil, fmt.Errorf("sizes: %w", err)
	}
	deltas, err := deltasFigure(ctx, job)
	if err != nil {
		return nil, fmt.Errorf("deltas: %w", err)
	}
	structures, err := structuresFigure(job)
	if err != nil {
		return nil, err
	}
	return []Figure{hashesFigure(1, 8), hashesFigure(2, 16), ratioFigure(), sizes, deltas, structures}, nil
}
