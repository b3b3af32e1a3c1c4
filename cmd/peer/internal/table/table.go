// Package table formats rows of text in aligned columns, and numbers for people.
package table

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Table is a header and rows of cells.
type Table struct {
	header []string
	rows   [][]string
}

// New returns a table with these column headings. A heading that begins with ">" aligns its column to
// the right, for numbers.
func New(header ...string) *Table { return &Table{header: header} }

// Row appends a row; cells are formatted as by [fmt.Sprint].
func (t *Table) Row(cells ...any) {
	row := make([]string, len(t.header))
	for i, c := range cells[:min(len(cells), len(row))] {
		row[i] = fmt.Sprint(c)
	}
	t.rows = append(t.rows, row)
}

// Rule appends a line between rows.
func (t *Table) Rule() { t.rows = append(t.rows, nil) }

// lineWidth is the assumed width of a terminal.
const lineWidth = 80

// Text returns the table with each line after indent. If the table would be wider than a terminal,
// headings of several words are broken into two lines. If that is not enough, the last column is
// wrapped or, where that is short, columns are one space apart instead of two.
func (t *Table) Text(indent string) string {
	right := make([]bool, len(t.header))
	header := make([]string, len(t.header))
	for i, h := range t.header {
		header[i], right[i] = strings.CutPrefix(h, ">")
	}
	lines := [][]string{header}
	width := t.widths(lines)
	gap := "  "
	if total(width, gap) > lineWidth-len(indent) && strings.Contains(strings.Join(header, ""), " ") {
		lines = twoLines(header)
		width = t.widths(lines)
	}
	if over := total(width, gap) - (lineWidth - len(indent)); over > 0 {
		last := len(width) - 1
		if room := width[last] - over; !right[last] && room >= 12 {
			width[last] = room
		} else {
			gap = " "
		}
	}
	var b strings.Builder
	line := func(cells []string) {
		var l strings.Builder
		more := ""
		for i, cell := range cells {
			if i == len(cells)-1 && utf8.RuneCountInString(cell) > width[i] {
				cell, more = wrap(cell, width[i])
			}
			pad := strings.Repeat(" ", max(0, width[i]-utf8.RuneCountInString(cell)))
			if right[i] {
				l.WriteString(pad + cell)
			} else {
				l.WriteString(cell + pad)
			}
			l.WriteString(gap)
		}
		b.WriteString(strings.TrimRight(indent+l.String(), " ") + "\n")
		at := strings.Repeat(" ", total(width, gap)-width[max(0, len(width)-1)])
		for more != "" { // ends: each round takes at least a word
			var next string
			next, more = wrap(more, width[len(width)-1])
			b.WriteString(indent + at + next + "\n")
		}
	}
	for _, cells := range lines {
		line(cells)
	}
	for _, row := range t.rows {
		if row == nil {
			row = make([]string, len(width))
			for i := range row {
				row[i] = strings.Repeat("-", width[i])
			}
		}
		line(row)
	}
	return b.String()
}

// widths returns the widths of the columns.
func (t *Table) widths(header [][]string) []int {
	width := make([]int, len(t.header))
	for _, row := range append(header, t.rows...) {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	return width
}

// total returns the width of a line.
func total(width []int, gap string) int {
	sum := len(gap) * max(0, len(width)-1)
	for _, w := range width {
		sum += w
	}
	return sum
}

// twoLines breaks headings into two lines, of which the second is the longer one.
func twoLines(header []string) [][]string {
	above, below := make([]string, len(header)), make([]string, len(header))
	for i, h := range header {
		at := strings.LastIndex(h[:(len(h)+1)/2], " ")
		if at < 0 {
			at = strings.LastIndex(h, " ")
		}
		above[i], below[i] = h[:max(at, 0)], h[at+1:]
	}
	return [][]string{above, below}
}

// wrap breaks text at the last space that keeps the line within width, or at the first space if there
// is none, and returns the line and the rest.
func wrap(text string, width int) (line, rest string) {
	column, at := 0, -1
	for i, r := range text {
		if r == ' ' && (column <= width || at < 0) {
			at = i
		}
		if column++; column > width && at >= 0 {
			return text[:at], text[at+1:]
		}
	}
	return text, ""
}

// Count writes a whole number with commas between thousands.
func Count[N int | int64 | uint64](n N) string {
	digits := strconv.FormatInt(int64(n), 10)
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// Of writes a number of things whose plural ends in s, such as "2 peers".
func Of[N int | int64 | uint64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return Count(n) + " " + thing + "s"
}

// Bytes writes a number of bytes with three digits and a binary unit.
func Bytes[N int | int64 | uint64](n N) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v := float64(n)
	for _, unit := range []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"} {
		v /= 1024
		switch {
		case v < 9.995:
			return fmt.Sprintf("%.2f %s", v, unit)
		case v < 99.95:
			return fmt.Sprintf("%.1f %s", v, unit)
		case v < 1023.5:
			return fmt.Sprintf("%.0f %s", v, unit)
		}
	}
	return fmt.Sprintf("%.0f EiB", v)
}

// Percent writes part of whole, "-" if there is no whole.
func Percent[N int | int64 | uint64](part, whole N) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}
