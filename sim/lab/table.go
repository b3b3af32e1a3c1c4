package lab

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// WriteText prints a table in columns, text to the left and numbers to the right.
func (t *Table) WriteText(w io.Writer) error {
	lines, widths, text := t.cells(), make([]int, len(t.Columns)), make([]bool, len(t.Columns))
	for i := range t.Columns {
		for _, line := range lines {
			widths[i] = max(widths[i], utf8.RuneCountInString(line[i]))
		}
		text[i] = t.isText(i)
	}
	var b strings.Builder
	b.WriteString(t.Title + "\n")
	for _, line := range lines {
		var l strings.Builder
		for i, cell := range line {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if text[i] {
				l.WriteString("  " + cell + pad)
			} else {
				l.WriteString("  " + pad + cell)
			}
		}
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
	}
	for _, note := range t.Notes {
		b.WriteString("  " + note + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// cells returns the headings and the rows as text; measured values with their intervals.
func (t *Table) cells() [][]string {
	lines := [][]string{nil}
	for _, c := range t.Columns {
		lines[0] = append(lines[0], c.Heading())
	}
	for _, row := range t.Rows {
		var line []string
		for i, v := range row {
			cell := t.Columns[i].text(v)
			if m, ok := v.(Measure); ok && m.Half > 0 {
				cell += " ±" + strconv.FormatFloat(Round(m.Half, 2), 'f', -1, 64)
			}
			line = append(line, cell)
		}
		lines = append(lines, line)
	}
	return lines
}

// isText reports whether a column has text in some row.
func (t *Table) isText(column int) bool {
	return slices.ContainsFunc(t.Rows, func(row []any) bool {
		_, ok := row[column].(string)
		return ok
	})
}

// foldedRows is the least number of rows of a table that is folded.
const foldedRows = 60

// OnPage returns the part of a table that RESULTS.md has: without details.
func (t *Table) OnPage() *Table {
	part := &Table{Title: t.Title, Notes: t.Notes, Chart: t.Chart}
	for _, c := range t.Columns {
		if !c.Detail {
			part.Columns = append(part.Columns, c)
		}
	}
	for _, row := range t.Rows {
		if t.Detail != nil && t.Detail(row) {
			continue
		}
		var cells []any
		for i, v := range row {
			if !t.Columns[i].Detail {
				cells = append(cells, v)
			}
		}
		part.Rows = append(part.Rows, cells)
	}
	if more := len(t.Rows) - len(part.Rows); more > 0 {
		part.Notes = append([]string{fmt.Sprintf("The command prints %d more rows.", more)}, t.Notes...)
	}
	return part
}

// WriteMarkdown writes what RESULTS.md has of a table.
func (t *Table) WriteMarkdown(w io.Writer) {
	t = t.OnPage()
	fmt.Fprintf(w, "### %s\n\n", t.Title)
	if t.Chart != nil {
		fmt.Fprintf(w, "![%s](figures/%s.svg)\n\n", t.Title, t.Chart.File)
	}
	if len(t.Rows) > 0 {
		t.writeRows(w)
	}
	for _, note := range t.Notes {
		fmt.Fprintf(w, "%s\n\n", note)
	}
}

func (t *Table) writeRows(w io.Writer) {
	folded := len(t.Rows) >= foldedRows
	if folded {
		fmt.Fprintf(w, "<details><summary>%d rows</summary>\n\n", len(t.Rows))
	}
	line := func(cells []string) { fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | ")) }
	cells, rule := make([]string, len(t.Columns)), make([]string, len(t.Columns))
	for i, c := range t.Columns {
		cells[i], rule[i] = c.Heading(), "--:"
		if t.isText(i) {
			rule[i] = "---"
		}
	}
	line(cells)
	line(rule)
	for _, row := range t.Rows {
		for i, v := range row {
			cells[i] = strings.ReplaceAll(t.Columns[i].text(v), "|", `\|`)
		}
		line(cells)
	}
	if folded {
		fmt.Fprint(w, "\n</details>\n")
	}
	fmt.Fprintln(w)
}

// Table is a part of an experiment's result.
type Table struct {
	Title   string
	Columns []Column
	Rows    [][]any
	Notes   []string // lines below the table
	Chart   *Chart   // how it is drawn; nil = not at all

	// Detail reports whether a row is left out of RESULTS.md; nil = none is. Text and CSV have every row.
	Detail func(row []any) bool
}

// Column describes one value of a row.
type Column struct {
	Name   string // in CSV: lower case, words joined by _
	Head   string // the heading in text; empty says Name
	Format string // a fmt verb for text; empty says %v
	// Loose is the share by which a number of a short run may differ from that of a
	// full one. With 0 the texts must be equal; with [AnyValue] they are not compared.
	Loose float64
	// Detail leaves the column out of RESULTS.md.
	Detail bool
}

// AnyValue is for columns that a short run cannot reproduce.
const AnyValue = math.MaxFloat64

// Exact is the Loose of values that are the same in every run, except that a short run omits
// those of large inputs.
const Exact = 1e-6

// Row adds one value for each column. nil, NaN and infinities are printed as "-", and as empty
// cells in CSV.
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

// Skip adds a row that has only its first values, for short runs.
func (t *Table) Skip(first ...any) {
	t.Row(append(first, make([]any, len(t.Columns)-len(first))...)...)
}

// Note adds a line below the table.
func (t *Table) Note(format string, args ...any) {
	t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
}

func (c Column) Heading() string {
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
		if m, ok := v.(Measure); ok {
			return strconv.FormatFloat(Round(m.Value, 6), 'f', -1, 64)
		}
		return fmt.Sprint(v)
	}
	switch v := v.(type) {
	case string:
		return v
	case Measure:
		return fmt.Sprintf(c.Format, v.Value)
	}
	return fmt.Sprintf(c.Format, v)
}

// measured reports whether a column has a confidence interval in some row.
func (t *Table) measured(column int) bool {
	return slices.ContainsFunc(t.Rows, func(row []any) bool {
		m, ok := row[column].(Measure)
		return ok && m.Half > 0
	})
}
