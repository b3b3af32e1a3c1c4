package lab

import (
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// ReadTables reads what --csv prints. A table has a chart of all columns with numbers, if the first is one of them.
func ReadTables(text string) (tables []*Table, err error) {
	_, text, _ = strings.Cut("\n"+text, "\n# ") // the command
	for part := range strings.SplitSeq(text, "\n# ") {
		title, body, _ := strings.Cut(part, "\n")
		rows, err := csv.NewReader(strings.NewReader(body)).ReadAll()
		switch {
		case err != nil:
			return nil, err
		case len(rows) == 0:
			continue
		}
		t := &Table{Title: title}
		for _, name := range rows[0] {
			t.Columns = append(t.Columns, Column{Name: name})
		}
		for _, row := range rows[1:] {
			var cells []any
			for _, cell := range row {
				cells = append(cells, cell)
			}
			t.Rows = append(t.Rows, cells)
		}
		tables = append(tables, t)
		numbers := func(column int) bool {
			return slices.ContainsFunc(t.Rows, func(row []any) bool { return !math.IsNaN(cellValue(row[column])) })
		}
		c := &Chart{X: rows[0][0]}
		for i, name := range rows[0][1:] {
			if numbers(i + 1) {
				c.Lines = append(c.Lines, name)
			}
		}
		if !slices.ContainsFunc(t.Rows, func(row []any) bool { return math.IsNaN(cellValue(row[0])) }) && len(c.Lines) > 0 {
			t.Chart = c
		}
	}
	if len(tables) == 0 {
		return nil, errors.New("no tables as sim prints them with --csv")
	}
	return tables, nil
}

// Find returns the value in a column, by its name, of the row whose first cell is row.
func (t *Table) Find(row, column string) (float64, error) {
	at := t.column(column)
	if at < 0 {
		return 0, fmt.Errorf("%s: no column %s", t.Title, column)
	}
	for _, cells := range t.Rows {
		if fmt.Sprint(cells[0]) == row {
			if v := cellValue(cells[at]); !math.IsNaN(v) {
				return v, nil
			}
			return 0, fmt.Errorf("%s: %s of %s is %v", t.Title, column, row, cells[at])
		}
	}
	return 0, fmt.Errorf("%s: no row %s", t.Title, row)
}
