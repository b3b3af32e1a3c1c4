// Package lab is the workbench of the rooms of sim: jobs, tables, flags and the command line
// of experiments, the formulas of the documents, and what is filled with random keys.
package lab

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime/debug"
	"time"
)

// Job is one run of an experiment: its parameters and the tables that it makes.
type Job struct {
	Seed   uint64   // of everything random
	Trials int      // how many filters or lookups; 0: the experiment's default
	Args   []string // after the name, if the experiment takes arguments
	Out    string   // directory for the files that an experiment writes
	Short  bool     // do only as much as a test needs to compare the tables

	name     string
	command  string
	Tables   []*Table
	Stderr   io.Writer
	start    time.Time
	reported time.Time
}

// Rand returns a source of random numbers that depends on the seed and on
// stream only, so that parts of an experiment don't disturb each other.
func (j *Job) Rand(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(j.Seed, stream)) }

// Progress prints to stderr, once the job has run for two seconds and then at most every second.
func (j *Job) Progress(format string, args ...any) {
	now := time.Now()
	if took := now.Sub(j.start); took >= 2*time.Second && now.Sub(j.reported) >= time.Second {
		j.reported = now
		fmt.Fprintf(j.Stderr, "%s: %4.0f s  %s\n", j.name, took.Seconds(), fmt.Sprintf(format, args...))
	}
}

// Table starts a table. Tables are printed when the experiment is done, in the order in
// which they were started.
func (j *Job) Table(title string, columns ...Column) *Table {
	t := &Table{Title: title, Columns: columns}
	j.Tables = append(j.Tables, t)
	return t
}

func (j *Job) writeText(w io.Writer) error {
	for i, t := range j.Tables {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := t.WriteText(w); err != nil {
			return err
		}
	}
	return nil
}

// writeCSV writes the command, and values unrounded, nil as an empty cell. A measured column is followed
// by one with half of its confidence interval of 95 %.
func (j *Job) writeCSV(w io.Writer) error {
	info, _ := debug.ReadBuildInfo() // its version has the commit; (devel) in tests and in go run without -buildvcs=true
	_, err := fmt.Fprintf(w, "# %s; seed %d; commit %s\n", j.command, j.Seed, info.Main.Version)
	for _, t := range j.Tables {
		if err == nil {
			_, err = w.Write(t.csv())
		}
	}
	return err
}

// csv returns the title as a comment, the names of the columns, and the values.
func (t *Table) csv() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n", t.Title)
	out := csv.NewWriter(&b)
	measured := make([]bool, len(t.Columns))
	var head []string
	for i, c := range t.Columns {
		head = append(head, c.Name)
		if measured[i] = t.measured(i); measured[i] {
			head = append(head, c.Name+"_ci95")
		}
	}
	out.Write(head)
	for _, row := range t.Rows {
		var cells []string
		for i, v := range row {
			m, ok := v.(Measure)
			switch {
			case v == nil:
				cells = append(cells, "")
			case ok:
				cells = append(cells, fmt.Sprint(m.Value))
			default:
				cells = append(cells, fmt.Sprint(v))
			}
			switch {
			case ok && m.Half > 0:
				cells = append(cells, fmt.Sprint(m.Half))
			case measured[i]:
				cells = append(cells, "")
			}
		}
		out.Write(cells)
	}
	out.Flush()
	return b.Bytes()
}

// Part returns a job that is a part of j: an experiment with j's parameters.
func (j *Job) Part(experiment string) *Job {
	return &Job{Seed: j.Seed, Trials: j.Trials, Out: j.Out, Short: j.Short, name: experiment, Stderr: j.Stderr, start: time.Now()}
}

// Quiet returns a job that prints no progress.
func Quiet(seed uint64) *Job { return &Job{Seed: seed, Stderr: io.Discard, start: time.Now()} }

type Runner func(job *Job) error
