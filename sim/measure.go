package main

import (
	"context"
	"fmt"
	"math"
	"reflect"
)

// A measure is a measured number with half of its confidence interval of 95 %, which is
// zero if it is unknown.
type measure struct{ value, half float64 }

// counted is the measure of a share, in units of unit: of so many probes, so many were hits.
func counted(hits, probes, unit float64) measure {
	p := hits / probes
	return measure{p / unit, 1.96 * math.Sqrt(p*(1-p)/probes) / unit}
}

// meanOf is the measure of the mean of independent runs, by Student's t.
func meanOf(runs []float64) measure {
	mean, sd := meanAndError(runs)
	// t for 95 %, by degrees of freedom. From ten on, 1.96·(1+1.2/df) is close enough.
	t := []float64{0, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26}
	df := len(runs) - 1
	if df < len(t) {
		return measure{mean, t[df] * sd}
	}
	return measure{mean, 1.96 * (1 + 1.2/float64(df)) * sd}
}

// meanAndError returns the mean of independent values and its standard deviation, which is
// 0 for fewer than two.
func meanAndError(values []float64) (mean, sd float64) {
	n := float64(len(values))
	for _, v := range values {
		mean += v / n
	}
	squares := 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(squares / max(1, n-1) / n)
}

// repeat runs an experiment with so many seeds, from the job's seed on. Each cell of the job's
// tables has the value on which all seeds agree, or the mean of their numbers with its
// confidence interval.
func (j *Job) repeat(ctx context.Context, run runner, seeds int) error {
	var runs [][]*Table
	for i := range seeds {
		part := *j
		part.Seed += uint64(i)
		if seeds > 1 {
			part.name = fmt.Sprintf("%s, seed %d of %d", j.name, i+1, seeds)
		}
		if err := run(ctx, &part); err != nil {
			return err
		}
		runs, j.JSON = append(runs, part.tables), part.JSON
		if len(part.tables) != len(runs[0]) {
			return fmt.Errorf("seed %d has %d tables, seed %d has %d", part.Seed, len(part.tables), j.Seed, len(runs[0]))
		}
	}
	j.tables = runs[0]
	for t, table := range j.tables {
		for _, run := range runs {
			if len(run[t].Rows) != len(table.Rows) {
				return fmt.Errorf("%s: %d rows with one seed, %d with another", table.Title, len(table.Rows), len(run[t].Rows))
			}
		}
		for r, row := range table.Rows {
			for c := range row {
				var all []any
				for _, run := range runs {
					all = append(all, run[t].Rows[r][c])
				}
				row[c] = together(all)
			}
		}
		if seeds > 1 {
			table.Note("Means of %d seeds, with intervals of 95 %% where these differ; notes and titles are those of the first.", seeds)
		}
	}
	return nil
}

// together returns the value of a cell from those of several runs. It is nil unless they agree
// or all are numbers.
func together(all []any) any {
	same := true
	var numbers []float64
	for _, v := range all {
		same = same && v == all[0]
		switch x := reflect.ValueOf(v); {
		case !x.IsValid():
		case x.CanInt():
			numbers = append(numbers, float64(x.Int()))
		case x.CanUint():
			numbers = append(numbers, float64(x.Uint()))
		case x.CanFloat():
			numbers = append(numbers, x.Float())
		default:
			if m, ok := v.(measure); ok {
				numbers = append(numbers, m.value)
			}
		}
	}
	switch {
	case same:
		return all[0]
	case len(numbers) == len(all):
		return meanOf(numbers)
	}
	return nil
}
