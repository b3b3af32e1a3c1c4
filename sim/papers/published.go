package papers

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

var (
	//go:embed published/mitzenmacher.txt
	mitzenmacherText string
	//go:embed published/summary-cache.txt
	summaryCacheText string
)

// A printedCell is one value of a table of the documents, with the parameters of its
// filter.
type printedCell struct {
	Table, Row, Column string
	Value              json.Number // digit by digit as printed
	MN                 float64     // m/n
	K                  int         // hashes per key; 0 if the cell has the best k
	C                  float64     // share of the keys replaced; 0 in tables without deltas
	Plain              bool        // the array is sent uncompressed
}

// published returns every cell of the tables of both documents, in their order.
func published() ([]printedCell, error) {
	cells, err := parseMitzenmacher(mitzenmacherText)
	if err != nil {
		return nil, err
	}
	more, err := parseSummaryCache(summaryCacheText)
	return append(cells, more...), err
}

// replaced is c of the two tables about deltas, which their captions give.
var replaced = map[string]float64{"VI": 0.05, "VII": 0.01}

// parseMitzenmacher reads tables with a filter in each column: a line "TABLE name", then lines
// of a label, a symbol and the values, separated by tabs.
func parseMitzenmacher(text string) ([]printedCell, error) {
	var cells []printedCell
	for block := range strings.SplitSeq(text, "TABLE ") {
		lines := strings.Split(strings.TrimSpace(block), "\n")
		if len(lines) == 1 {
			continue // before the first table
		}
		table := strings.TrimSpace(lines[0])
		rows := map[string][]string{}
		var order []string
		for _, line := range lines[1:] {
			fields := strings.Split(strings.TrimSpace(line), "\t")
			if len(fields) < 3 {
				return nil, fmt.Errorf("table %s: line %q: want a label, a symbol and values", table, line)
			}
			symbol := strings.Trim(fields[1], "$ ")
			rows[symbol] = fields[2:]
			order = append(order, symbol)
		}
		for _, symbol := range order {
			if len(rows[symbol]) != len(rows["m/n"]) || len(rows[symbol]) != len(rows["k"]) {
				return nil, fmt.Errorf("table %s: row %s has %d values, not %d", table, symbol, len(rows[symbol]),
					len(rows["m/n"]))
			}
			for i, value := range rows[symbol] {
				mn, err1 := strconv.ParseFloat(rows["m/n"][i], 64)
				k, err2 := strconv.Atoi(rows["k"][i])
				if err1 != nil || err2 != nil {
					return nil, fmt.Errorf("table %s: column %d: m/n %q, k %q", table, i+1,
						rows["m/n"][i], rows["k"][i])
				}
				cells = append(cells, printedCell{
					Table: table, Row: symbol, Column: "m/n=" + rows["m/n"][i],
					Value: json.Number(value), MN: mn, K: k, C: replaced[table],
					Plain: rows["z/n"][i] == rows["m/n"][i],
				})
			}
		}
	}
	return cells, nil
}

// parseSummaryCache reads tables with one m/n in each row and one k in each column, after a
// column with the best k. Fields end in "|"; the last ones of a row may be empty.
func parseSummaryCache(text string) ([]printedCell, error) {
	var cells []printedCell
	var hashes []int
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSpace(line), "|")
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		if fields[0] == "m/n" {
			hashes = hashes[:0]
			for _, head := range fields[2:] {
				if k, err := strconv.Atoi(strings.TrimPrefix(head, "k=")); err == nil {
					hashes = append(hashes, k)
				}
			}
			continue
		}
		mn, err := strconv.ParseFloat(fields[0], 64)
		if err != nil || len(fields) < 3 {
			return nil, fmt.Errorf("table SC: line %q", line)
		}
		row := "m/n=" + fields[0]
		cells = append(cells, printedCell{Table: "SC", Row: row, Column: "k", Value: json.Number(fields[1]), MN: mn})
		for i, value := range fields[2:] {
			if value == "" {
				continue
			}
			if i >= len(hashes) {
				return nil, fmt.Errorf("table SC: line %q has more values than its head", line)
			}
			cells = append(cells, printedCell{
				Table: "SC", Row: row, Column: fmt.Sprintf("k=%d", hashes[i]),
				Value: json.Number(value), MN: mn, K: hashes[i],
			})
		}
	}
	return cells, nil
}
