package main

import (
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	lineWidth = 80 // of a terminal
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
	for i, line := range wrapped(text, lineWidth-utf8.RuneCountInString(indent)) {
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

// writeText prints a table in columns, text to the left and numbers to the right. If it is
// wider than a terminal, headings and text are broken into several lines. Columns that still do
// not fit follow in further parts, each of which repeats the first column.
func (t *Table) writeText(w io.Writer) error {
	columns := t.textColumns()
	if total(columns) > lineWidth {
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
		columns[i] = &textColumn{head: []string{c.head()}}
		for _, row := range t.Rows {
			text := c.text(row[i])
			switch v := row[i].(type) {
			case measure:
				if v.half > 0 {
					text += " ±" + strconv.FormatFloat(figures(v.half, 2), 'f', -1, 64)
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
		if len(part) > 1 && total(part)+len(gap)+c.width > lineWidth {
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
