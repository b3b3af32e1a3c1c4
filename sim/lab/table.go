package lab

import (
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	LineWidth = 80 // of a terminal
	textWidth = 34 // of a column of text, if the table would be too wide
	gap       = "  "
)

// wrapped breaks text at spaces into lines of at most width. A longer word has its own line.
func wrapped(text string, width int) (lines []string) {
	var line strings.Builder
	for word := range strings.FieldsSeq(text) {
		if line.Len() > 0 && utf8.RuneCountInString(line.String())+1+utf8.RuneCountInString(word) > width {
			lines = append(lines, line.String())
			line.Reset()
		}
		if line.Len() > 0 {
			line.WriteByte(' ')
		}
		line.WriteString(word)
	}
	return append(lines, line.String())
}

// paragraph writes text with an indentation, which is first in the first line.
func paragraph(w *strings.Builder, first, indent, text string) {
	for i, line := range wrapped(text, LineWidth-utf8.RuneCountInString(indent)) {
		if i == 0 {
			w.WriteString(first + line + "\n")
		} else {
			w.WriteString(indent + line + "\n")
		}
	}
}

// A textColumn is a column of a printed table. Each cell is a list of lines.
type textColumn struct {
	head  []string
	cells [][]string
	width int
	left  bool // it is text, and aligned to the left
}

func (c *textColumn) measure() {
	c.width = 0
	for _, cell := range append(c.cells, c.head) {
		for _, line := range cell {
			c.width = max(c.width, utf8.RuneCountInString(line))
		}
	}
}

// narrow breaks long text into lines, and the heading into lines of the width of the cells.
func (c *textColumn) narrow() {
	if c.left {
		for i, cell := range c.cells {
			c.cells[i] = wrapped(cell[0], textWidth)
		}
	}
	head := strings.ReplaceAll(c.head[0], "/", "/ ") // slashes may be followed by a line break
	c.head = nil
	c.measure()
	for word := range strings.FieldsSeq(head) {
		c.width = max(c.width, utf8.RuneCountInString(word))
	}
	c.head = wrapped(head, c.width)
	for i, line := range c.head {
		c.head[i] = strings.ReplaceAll(line, "/ ", "/")
	}
	c.measure()
}

// WriteText prints a table in columns, text to the left and numbers to the right. If it is
// wider than a terminal, headings and text are broken into several lines. Columns that still do
// not fit follow in further parts, each of which repeats the first column.
func (t *Table) WriteText(w io.Writer) error {
	columns := t.textColumns()
	if total(columns) > LineWidth {
		for _, c := range columns {
			c.narrow()
		}
	}
	var b strings.Builder
	paragraph(&b, "", "", t.Title)
	for rest := columns[1:]; ; b.WriteString("\n") { // each turn prints at least one column of the rest, if there is any
		part := fitting(columns[0], rest)
		writePart(&b, part)
		if rest = rest[len(part)-1:]; len(rest) == 0 {
			break
		}
	}
	for _, note := range t.Notes {
		paragraph(&b, gap, gap, note)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (t *Table) textColumns() []*textColumn {
	columns := make([]*textColumn, len(t.Columns))
	for i, c := range t.Columns {
		columns[i] = &textColumn{head: []string{c.Heading()}}
		for _, row := range t.Rows {
			text := c.text(row[i])
			switch v := row[i].(type) {
			case Measure:
				if v.Half > 0 {
					text += " ±" + strconv.FormatFloat(Round(v.Half, 2), 'f', -1, 64)
				}
			case string:
				columns[i].left = true
			}
			columns[i].cells = append(columns[i].cells, []string{text})
		}
		columns[i].measure()
	}
	return columns
}

func total(columns []*textColumn) (width int) {
	for _, c := range columns {
		width += len(gap) + c.width
	}
	return width
}

// fitting returns the key column and as many of the others as fit into a line: at least one, if
// there is any.
func fitting(key *textColumn, rest []*textColumn) []*textColumn {
	part := []*textColumn{key}
	for _, c := range rest {
		if len(part) > 1 && total(part)+len(gap)+c.width > LineWidth {
			break
		}
		part = append(part, c)
	}
	return part
}

func writePart(b *strings.Builder, columns []*textColumn) {
	line := func(cell func(c *textColumn) string) {
		var l strings.Builder
		for _, c := range columns {
			text := cell(c)
			pad := strings.Repeat(" ", c.width-utf8.RuneCountInString(text))
			if c.left {
				l.WriteString(gap + text + pad)
			} else {
				l.WriteString(gap + pad + text)
			}
		}
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
	}
	headings := 0
	for _, c := range columns {
		headings = max(headings, len(c.head))
	}
	for i := range headings { // which are aligned at the bottom
		line(func(c *textColumn) string {
			if at := i - (headings - len(c.head)); at >= 0 {
				return c.head[at]
			}
			return ""
		})
	}
	for row := range columns[0].cells {
		more := true
		for i := 0; more; i++ { // until no cell of the row has a line left
			more = false
			line(func(c *textColumn) string {
				cell := c.cells[row]
				more = more || i+1 < len(cell)
				if i < len(cell) {
					return cell[i]
				}
				return ""
			})
		}
	}
}

// foldedRows is the least number of rows of a table that is folded.
const foldedRows = 60

func (t *Table) WriteMarkdown(w io.Writer) {
	fmt.Fprintf(w, "### %s\n\n", t.Title)
	folded := len(t.Rows) >= foldedRows
	if folded {
		fmt.Fprintf(w, "<details><summary>%d rows</summary>\n\n", len(t.Rows))
	}
	line := func(cells []string) { fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | ")) }
	cells, rule := make([]string, len(t.Columns)), make([]string, len(t.Columns))
	for i, c := range t.Columns {
		cells[i], rule[i] = c.Heading(), "--:"
		for _, row := range t.Rows {
			if _, text := row[i].(string); text {
				rule[i] = "---"
			}
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
	for _, note := range t.Notes {
		fmt.Fprintf(w, "%s\n\n", note)
	}
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

// Exact is the Loose of values that are the same in every run, except that a short run omits
// those of large inputs.
const Exact = 1e-6

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

// Skip adds a row that has only its first values, for short runs.
func (t *Table) Skip(first ...any) {
	t.Row(append(first, make([]any, len(t.Columns)-len(first))...)...)
}

// Find returns the value in a column, by its name, of the row that begins with cells, as they are
// printed with " / " between them.
func (t *Table) Find(cells, column string) (float64, error) {
	at := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == column })
	if at < 0 {
		return 0, fmt.Errorf("%s: no column %s", t.Title, column)
	}
	for _, row := range t.Rows {
		var text strings.Builder
		for i, v := range row {
			text.WriteString(t.Columns[i].text(v) + " / ")
		}
		if strings.HasPrefix(text.String(), cells+" / ") {
			if m, ok := row[at].(Measure); ok {
				return m.Value, nil
			}
			if v := reflect.ValueOf(row[at]); v.IsValid() && v.CanConvert(reflect.TypeFor[float64]()) {
				return v.Convert(reflect.TypeFor[float64]()).Float(), nil
			}
			return 0, fmt.Errorf("%s: %s of %s is %v", t.Title, column, cells, row[at])
		}
	}
	return 0, fmt.Errorf("%s: no row %s", t.Title, cells)
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
