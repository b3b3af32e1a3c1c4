// Package table prints rows of text in aligned columns, and numbers the way
// that people read them.
package table

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Table is a header and rows of cells. The zero Table is empty and usable.
type Table struct {
	header []string
	rows   [][]string
}

// New returns a table with these column headings. A heading that begins with
// ">" aligns its column to the right, as numbers want.
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

// Write prints the table, each line behind indent.
func (t *Table) Write(w io.Writer, indent string) error {
	width := make([]int, len(t.header))
	right := make([]bool, len(t.header))
	header := make([]string, len(t.header))
	for i, h := range t.header {
		header[i], right[i] = strings.CutPrefix(h, ">")
		width[i] = utf8.RuneCountInString(header[i])
	}
	for _, row := range t.rows {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	line := func(cells []string) {
		var l strings.Builder
		for i, cell := range cells {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if right[i] {
				l.WriteString(pad + cell)
			} else {
				l.WriteString(cell + pad)
			}
			l.WriteString("  ")
		}
		b.WriteString(strings.TrimRight(indent+l.String(), " ") + "\n")
	}
	line(header)
	for _, row := range t.rows {
		if row == nil {
			row = make([]string, len(width))
			for i := range row {
				row[i] = strings.Repeat("-", width[i])
			}
		}
		line(row)
	}
	_, err := io.WriteString(w, b.String())
	return err
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

// Of writes how many there are of something that takes an s in the plural.
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
