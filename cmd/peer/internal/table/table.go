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

// Columns is the width that terminals have at least.
const Columns = 80

// Write prints the table, each line behind indent. What is wider than 80 columns
// gets headings of several lines, then a last column of several lines, and then
// further blocks of columns below the first, each with the first column again. A
// word is never broken: one that is longer makes its line longer.
func (t *Table) Write(w io.Writer, indent string) error {
	room := Columns - utf8.RuneCountInString(indent)
	right := make([]bool, len(t.header))
	header := make([]string, len(t.header))
	for i, h := range t.header {
		header[i], right[i] = strings.CutPrefix(h, ">")
	}
	all := make([]int, len(header))
	for i := range all {
		all[i] = i
	}
	cells := t.cells(header, strings.Fields)
	if t.total(t.cells(header, whole), all) <= room {
		cells = t.cells(header, whole)
	} else if last := len(header) - 1; last > 0 && !right[last] && t.total(cells, all) > room {
		left := room - t.total(cells, all[:last]) - gap
		if widest := width(cells, last); left >= min(widest, narrowest) {
			for r := range t.rows {
				cells[r+1][last] = Fold(strings.Join(cells[r+1][last], " "), left)
			}
		}
	}
	var b strings.Builder
	for rest := all; len(rest) > 0; {
		n := len(rest)
		for n > 2 && t.total(cells, rest[:n]) > room {
			n--
		}
		if len(rest) < len(all) {
			b.WriteString("\n")
		}
		write(&b, cells, rest[:n], right, indent)
		if rest = rest[n:]; len(rest) > 0 { // shorter by one at least each time: n is 2 or more unless all were taken
			rest = append([]int{0}, rest...)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

const (
	gap       = 2  // between columns
	narrowest = 20 // a column of several lines
)

func whole(s string) []string { return []string{s} }

// cells are the lines of each cell, the headings first; nil is a rule.
func (t *Table) cells(header []string, split func(string) []string) [][][]string {
	cells := make([][][]string, 1, 1+len(t.rows))
	for _, h := range header {
		cells[0] = append(cells[0], split(h))
	}
	for _, row := range t.rows {
		var each [][]string
		for _, c := range row {
			each = append(each, whole(c))
		}
		cells = append(cells, each)
	}
	return cells
}

// total is the width of these columns.
func (t *Table) total(cells [][][]string, which []int) int {
	sum := -gap
	for _, i := range which {
		sum += gap + width(cells, i)
	}
	return sum
}

// width is that of a column.
func width(cells [][][]string, column int) (n int) {
	for _, row := range cells {
		if row != nil {
			for _, line := range row[column] {
				n = max(n, utf8.RuneCountInString(line))
			}
		}
	}
	return n
}

// Fold breaks s between words into lines of up to n characters; a longer word has a line of its own.
func Fold(s string, n int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(s) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= n:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	return append(lines, line)
}

// write prints a block of columns.
func write(b *strings.Builder, cells [][][]string, which []int, right []bool, indent string) {
	for r, row := range cells {
		high := 1
		for _, i := range which {
			if row != nil {
				high = max(high, len(row[i]))
			}
		}
		for y := range high {
			line := indent
			for _, i := range which {
				text, wide := "", width(cells, i)
				switch {
				case row == nil:
					text = strings.Repeat("-", wide)
				case r == 0 && y >= high-len(row[i]): // headings stand on the rows
					text = row[i][y-(high-len(row[i]))]
				case r > 0 && y < len(row[i]):
					text = row[i][y]
				}
				pad := strings.Repeat(" ", wide-utf8.RuneCountInString(text))
				if right[i] {
					line += pad + text
				} else {
					line += text + pad
				}
				line += strings.Repeat(" ", gap)
			}
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
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
