package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
)

var _ = experiments.add(Experiment{
	Name:    "tables",
	Summary: "every cell of the documents' tables: published, computed, measured on real filters",
	Seconds: 18,
	Run:     runTables,
})

// A cell is one printed value beside the right one.
type cell struct {
	table, row, column string
	published          json.Number // digit by digit
	computed           float64
	difference         float64  // published minus computed
	measured           *measure // on filters of 10,000 keys; nil if there is nothing to measure
	agrees             bool     // to within one unit of the last printed digit
	text               string   // a note
	verdict            verdict
}

// tablesProbes is how many keys are looked up in a filter at most.
const tablesProbes = 4_000_000

func runTables(ctx context.Context, job *Job) error {
	printed, err := published()
	if err != nil {
		return err
	}
	cells := make([]cell, len(printed))
	for i, p := range printed {
		cells[i] = check(p)
	}
	for i := range cells {
		if cells[i].verdict == wrong {
			cells[i].text = explain(printed, i)
		}
	}
	if err := measureCells(ctx, job, printed, cells); err != nil {
		return err
	}
	cells = append(cells, claims()...)
	printTables(job, cells)
	return nil
}

// check computes the right value of a printed cell.
func check(p printedCell) cell {
	c := cell{table: p.Table, row: p.Row, column: p.Column, published: p.Value}
	c.computed, c.text = p.compute()
	c.judge()
	return c
}

// judge compares the published value with the computed one.
func (c *cell) judge() {
	value, _ := c.published.Float64()
	c.verdict = judge(c.published, c.computed)
	c.agrees = c.verdict != wrong
	if c.verdict == adjacent {
		c.note(roundingNote(c.published, c.computed))
	}
	c.difference = figures(value-c.computed, 6)
	c.computed = figures(c.computed, 10)
}

func (c *cell) note(text string) {
	if c.text != "" {
		c.text += "; "
	}
	c.text += text
}

// compute returns the value that belongs in the cell.
func (p printedCell) compute() (value float64, note string) {
	k := float64(p.K)
	switch {
	case p.Row == "m/n":
		return p.MN, "given"
	case p.Row == "k" && p.Plain:
		return float64(bestInteger(p.MN)), "the whole number of least f"
	case p.Row == "k":
		return k, "given"
	case p.Row == "z/n" && p.Plain:
		return p.MN, fmt.Sprintf("the array as it is; its entropy is %.3f", sentBits(p.MN, k))
	case p.Row == "z/n" && p.C == 0:
		return sentBits(p.MN, k), ""
	case p.Row == "z/n":
		return deltaBits(p.MN, k, p.C), ""
	case p.Row == "z/(cn)":
		return deltaBits(p.MN, k, p.C) / p.C, ""
	case p.Table == "SC" && p.K == 0:
		return bestHashes(p.MN), ""
	default:
		return falsePositives(p.MN, k), ""
	}
}

// explain gives the right value of a wrong cell, and the reason.
func explain(cells []printedCell, at int) string {
	p := cells[at]
	right, _ := p.compute()
	note := fmt.Sprintf("wrong: %s is right", inStyle(p.Value, right))

	for _, other := range cells {
		if other.Table != p.Table || other.Row != p.Row || other.Column == p.Column {
			continue
		}
		theirs, _ := other.compute()
		if judge(p.Value, theirs) != wrong && judge(other.Value, right) != wrong {
			return note + fmt.Sprintf("; exchanged with column %s, whose value this is, while k and f are those of the columns as printed", other.Column)
		}
	}
	value, _ := p.Value.Float64()
	for _, exponent := range []int{-1, 1} {
		if !(math.Abs(value*math.Pow10(exponent)-right) < math.Pow10(exponent)*lastUnit(p.Value)) {
			continue
		}
		note += fmt.Sprintf("; the exponent is off by %d", -exponent)
		above, ok1 := printedAt(cells, p.Table, p.MN-1, p.K)
		below, ok2 := printedAt(cells, p.Table, p.MN+1, p.K)
		if ok1 && ok2 {
			note += fmt.Sprintf(": f falls as m/n grows, from %s at m/n=%g to %s at m/n=%g", above, p.MN-1, below, p.MN+1)
		}
		return note
	}
	return note
}

// printedAt finds the value printed for a filter.
func printedAt(cells []printedCell, table string, mn float64, k int) (json.Number, bool) {
	for _, p := range cells {
		if p.Table == table && p.MN == mn && p.K == k {
			return p.Value, true
		}
	}
	return "", false
}

// printTables makes a table for each printed table, and one with counts.
func printTables(job *Job, cells []cell) {
	summary := job.Table("The documents' printed values",
		Column{Name: "table"}, Column{Name: "cells"}, Column{Name: "nearest", Head: "rounded to nearest"},
		Column{Name: "adjacent", Head: "cut off or rounded up"}, Column{Name: "wrong"})
	var table *Table
	var counts [3]int
	for i, c := range cells {
		if i == 0 || c.table != cells[i-1].table {
			title := "Mitzenmacher, Table " + c.table
			switch c.table {
			case "SC":
				title = "Summary Cache, false-positive tables (SC)"
			case "text":
				title = "Numbers in the running text"
			}
			table = job.Table(title, Column{Name: "row"}, Column{Name: "column"}, Column{Name: "published"},
				Column{Name: "computed", Format: "%.6g"}, Column{Name: "difference", Format: "%+.2g"},
				Column{Name: "measured", Format: "%.4g", Loose: 0.1}, Column{Name: "agrees"}, Column{Name: "note", Loose: AnyValue})
		}
		var measured any
		if c.measured != nil {
			measured = *c.measured
		}
		agrees := "yes"
		if !c.agrees {
			agrees = "NO"
		}
		table.Row(c.row, c.column, c.published, c.computed, c.difference, measured, agrees, c.text)
		counts[c.verdict]++
		if i == len(cells)-1 || cells[i+1].table != c.table {
			summary.Row(c.table, counts[0]+counts[1]+counts[2], counts[nearest], counts[adjacent], counts[wrong])
			counts = [3]int{}
		}
	}
	var list []string
	for _, c := range cells {
		if !c.agrees {
			list = append(list, fmt.Sprintf("%s, %s, %s: printed %s, right is %s", c.table, c.row, c.column, c.published, inStyle(c.published, c.computed)))
		}
	}
	summary.Note("The text, CSV and JSON of sim tables have the confidence intervals of measured values.")
	summary.Note("Wrong: %s.", strings.Join(list, "; "))
	summary.Note("Computed: (1-e^(-kn/m))^k, m·H(p) and m·H(q) as the documents define them. Measured: filters of %d keys made by package digest, coded by package arith.", measuredKeys)
}
