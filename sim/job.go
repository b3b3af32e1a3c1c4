package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// Job is one run of an experiment: its parameters and the tables that it makes.
type Job struct {
	Seed   uint64   // of everything random
	Trials int      // how many filters or lookups; 0: the experiment's default
	Args   []string // after the name, if the experiment takes arguments
	Out    string   // directory for the files that an experiment writes
	JSON   any      // what --json prints instead of the tables, if not nil
	Short  bool     // do only as much as a test needs to compare the tables

	name     string
	tables   []*Table
	stderr   io.Writer
	start    time.Time
	counted  time.Time // when the current part began: see Progress
	done     int       // its steps that were done last
	reported time.Time
}

// Rand returns a source of random numbers that depends on the seed and on
// stream only, so that parts of an experiment don't disturb each other.
func (j *Job) Rand(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(j.Seed, stream)) }

// Progress prints to stderr, once the job has run for two seconds and then at most every
// second. done of all steps are complete; from their time it estimates the time of the rest.
// Each part of a job counts its steps from 0. If all is 0, there is no estimate.
func (j *Job) Progress(done, all int, format string, args ...any) {
	now := time.Now()
	if done < j.done || j.counted.IsZero() {
		j.counted = now
		if j.done == 0 {
			j.counted = j.start
		}
	}
	j.done = done
	took := now.Sub(j.start)
	if took < 2*time.Second || now.Sub(j.reported) < time.Second {
		return
	}
	j.reported = now
	left := ""
	if done > 0 && all > 0 {
		left = fmt.Sprintf(", about %.0f s left", now.Sub(j.counted).Seconds()/float64(done)*float64(all-done))
	}
	fmt.Fprintf(j.stderr, "%s: %4.0f s%s  %s\n", j.name, took.Seconds(), left, fmt.Sprintf(format, args...))
}

// Table starts a table. Tables are printed when the experiment is done, in the order in
// which they were started.
func (j *Job) Table(title string, columns ...Column) *Table {
	t := &Table{Title: title, Columns: columns}
	j.tables = append(j.tables, t)
	return t
}

// Table is a part of an experiment's result.
type Table struct {
	Title   string
	Columns []Column
	Rows    [][]any
	Notes   []string // lines below the table
}

// Column describes one value of a row.
type Column struct {
	Name   string // the key in JSON: lower case, words joined by _
	Head   string // the heading in text; empty says Name
	Format string // a fmt verb for text; empty says %v
	// Loose is the share by which a number of a short run may differ from that of a
	// full one. With 0 the texts must be equal; with [AnyValue] they are not compared.
	Loose float64
}

// AnyValue is for columns that a short run cannot reproduce.
const AnyValue = math.MaxFloat64

// Row adds one value for each column. nil, NaN and infinities are printed as "-", and as null
// in JSON.
func (t *Table) Row(values ...any) {
	if len(values) != len(t.Columns) {
		panic(fmt.Sprintf("sim: %d values for the %d columns of %q", len(values), len(t.Columns), t.Title))
	}
	for i, v := range values {
		if f, ok := v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
			values[i] = nil
		}
	}
	t.Rows = append(t.Rows, values)
}

// skip adds a row that has only its first values, for short runs.
func (t *Table) skip(first ...any) {
	t.Row(append(first, make([]any, len(t.Columns)-len(first))...)...)
}

// Note adds a line below the table.
func (t *Table) Note(format string, args ...any) {
	t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
}

func (j *Job) writeText(w io.Writer) error {
	for i, t := range j.tables {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := t.writeText(w); err != nil {
			return err
		}
	}
	return nil
}

func (c Column) head() string {
	if c.Head == "" {
		return c.Name
	}
	return c.Head
}

func (c Column) text(v any) string {
	switch {
	case v == nil:
		return "-"
	case c.Format == "":
		if m, ok := v.(measure); ok {
			return strconv.FormatFloat(figures(m.value, 6), 'f', -1, 64)
		}
		return fmt.Sprint(v)
	}
	switch v := v.(type) {
	case string:
		return v
	case measure:
		return fmt.Sprintf(c.Format, v.value)
	}
	return fmt.Sprintf(c.Format, v)
}

// writeCSV writes values unrounded, and nil as an empty cell. A measured column is followed
// by one with half of its confidence interval of 95 %.
func (j *Job) writeCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	for _, t := range j.tables {
		fmt.Fprintf(w, "# %s\n", t.Title)
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
				m, ok := v.(measure)
				switch {
				case v == nil:
					cells = append(cells, "")
				case ok:
					cells = append(cells, fmt.Sprint(m.value))
				default:
					cells = append(cells, fmt.Sprint(v))
				}
				switch {
				case ok && m.half > 0:
					cells = append(cells, fmt.Sprint(m.half))
				case measured[i]:
					cells = append(cells, "")
				}
			}
			out.Write(cells)
		}
		out.Flush() // before the next title
	}
	return out.Error()
}

// measured reports whether a column has a confidence interval in some row.
func (t *Table) measured(column int) bool {
	return slices.ContainsFunc(t.Rows, func(row []any) bool {
		m, ok := row[column].(measure)
		return ok && m.half > 0
	})
}

func (j *Job) writeJSON(w io.Writer) error {
	type table struct {
		Title string           `json:"title"`
		Rows  []map[string]any `json:"rows"`
		Notes []string         `json:"notes,omitempty"`
	}
	out := struct {
		Experiment string  `json:"experiment"`
		Seed       uint64  `json:"seed"`
		Tables     []table `json:"tables"`
	}{Experiment: j.name, Seed: j.Seed, Tables: []table{}}
	for _, t := range j.tables {
		rows := []map[string]any{}
		for _, row := range t.Rows {
			object := make(map[string]any, len(row))
			for i, v := range row {
				name := t.Columns[i].Name
				object[name] = v
				if m, ok := v.(measure); ok {
					object[name] = m.value
					if m.half > 0 {
						object[name+"_ci95"] = m.half
					}
				}
			}
			rows = append(rows, object)
		}
		out.Tables = append(out.Tables, table{t.Title, rows, t.Notes})
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if j.JSON != nil {
		return encoder.Encode(j.JSON)
	}
	return encoder.Encode(out)
}
