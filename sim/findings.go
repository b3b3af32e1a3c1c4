package main

import (
	"context"
	"slices"
	"strings"
)

var _ = experiments.add(Experiment{
	Name:    "findings",
	Summary: "what was found, in ten lines, each with the rows of RESULTS.md that its numbers are in",
	Run:     runFindings,
})

// A finding is a line of the page that RESULTS.md opens with.
type finding struct {
	words string
	from  []source // of every number in words that was measured or computed
}

// A source is a cell of RESULTS.md.
type source struct {
	experiment string
	table      string // how the title begins
	row        string // its first cells, or some of them, between " / "
	column     string
	value      string
}

const (
	rivalsTable  = "structures at f"
	deltaTable   = "bits per replaced key"
	sketchTable  = "an older filter"
	limitTable   = "Section IV"
	messageTable = "Section V"
	systemsTable = "cache2k-web07: 76118 requests for 20484 objects, "
)

// findings has first what went against this project.
var findings = []finding{
	{"Against us: among 16 caches with one request a second in all, ours sends 5400.2 bytes a request with headers and membership, where ICP's questions take 888.1. At a hundred a second it is 136.8.", []source{
		{"systems", systemsTable + "16 caches", "ours", "and membership", "5400.2"},
		{"systems", systemsTable + "16 caches", "ICP", "and membership", "888.1"},
		{"systems", systemsTable + "16 caches", "ours, requests 100 times as fast", "and membership", "136.8"},
	}},
	{"Against us: where room is short, one owner per key answers 67.15 % of all requests from the caches and ours 66.69 %, although the owners move a body between caches for 74.91 % of requests where ours does for 25.01 %.", []source{
		{"systems", systemsTable + "4 caches", "one owner per key", "total hit %", "67.15"},
		{"systems", systemsTable + "4 caches", "ours", "total hit %", "66.69"},
		{"systems", systemsTable + "4 caches", "one owner per key", "bodies between caches, % of requests", "74.91"},
		{"systems", systemsTable + "4 caches", "ours", "bodies between caches, % of requests", "25.01"},
	}},
	{"Against us: a filter that is sent once and never changed is smaller as a ribbon filter, 13.85 bits a key at f = 2^-13 where ours takes 14.45, and in memory a binary fuse filter takes 14.64 where ours takes 16.27.", []source{
		{"rivals", rivalsTable, "ribbon filter, 64 wide", "message", "13.85"},
		{"rivals", rivalsTable, "one hash, m = n/f, compressed (ours)", "message", "14.45"},
		{"rivals", rivalsTable, "binary fuse filter, 4 places", "memory", "14.64"},
		{"rivals", rivalsTable, "one hash, m = n/f, compressed (ours)", "memory", "16.27"},
	}},
	{"Against us: with eleven hashes over a hundred keys our hash scheme has +37.73 % of false positives more than predicted. One hash, the default, has none of that.", []source{
		{"hashing", "Schemes", "100 / 1600 / 11 / double, mod 2^64 (ours)", "excess %", "+37.73"},
	}},
	{"Against us: a receiver whose base nobody knows, after 1 % was replaced, would be brought up to date by PinSketch with 6750 bytes, and is sent a snapshot of 142595.", []source{
		{"rivals", sketchTable, "1", "PinSketch", "6750"},
		{"rivals", sketchTable, "1", "snapshot", "142595"},
	}},
	{"To keep a copy in step, ours is the smallest of all: a replaced key takes 29.7 bits, in a cuckoo filter that is coded as well as can be 375.4; at f = 0.001 and 1 % of a million replaced it takes 26.16, where what the paper calls practical takes 41.00 and the entropy is 26.11.", []source{
		{"rivals", rivalsTable, "one hash, m = n/f, compressed (ours)", "update", "29.7"},
		{"rivals", rivalsTable, "cuckoo filter, 4 slots, 95 % full", "update", "375.4"},
		{"delta", deltaTable, "0.001 / 0.01 / ours", "given the old", "26.16"},
		{"delta", deltaTable, "0.001 / 0.01 / paper", "given the old", "41.00"},
		{"delta", deltaTable, "0.001 / 0.01 / ours", "entropy", "26.11"},
	}},
	{"The paper's limit for deltas, 0.5000 bits of log2(1/f) for each bit sent, is that of the exclusive-or; given the old filter it is 1.0000. Its conjecture, that deltas are best as p → 1 for any c < 1/2, is right, and more: it still holds at c = 0.69, and no longer at 0.7.", []source{
		{"limits", limitTable, "0.01", "p → 1", "0.5000"},
		{"limits", limitTable, "0.01", "given the old, p → 1", "1.0000"},
		{"limits", limitTable, "0.69", "most as p → 1", "yes"},
		{"limits", limitTable, "0.7", "most as p → 1", "no"},
	}},
	{"Counting filters, which the paper leaves open, are best sent with one hash as well: 11.4148 bits a key, of which the counts are 0.0062; ten hashes take 22.8543.", []source{
		{"limits", messageTable, "1", "coded by package digest", "11.4148"},
		{"limits", messageTable, "1", "of the counts", "0.0062"},
		{"limits", messageTable, "10", "coded by package digest", "22.8543"},
	}},
	{"Of the paper's printed numbers 4 cells of Table VI are wrong, exchanged, and 2 in the text; of Summary Cache's 475 cells 2. The simulated delta is 2076.03 bytes, where 2066.5 is printed and 2075.9 is right.", []source{
		{"tables", "The documents' printed values", "VI", "wrong", "4"},
		{"tables", "The documents' printed values", "text", "wrong", "2"},
		{"tables", "The documents' printed values", "SC", "cells", "475"},
		{"tables", "The documents' printed values", "SC", "wrong", "2"},
		{"trials", "Coded size", "n=10000 m=320000 k=2 c=5 %", "mean", "2076.03"},
		{"trials", "Coded size", "n=10000 m=320000 k=2 c=5 %", "paper's m·H", "2066.5"},
		{"trials", "Coded size", "n=10000 m=320000 k=2 c=5 %", "m·H", "2075.9"},
	}},
	{"A false negative is not less likely than a reboot, as Summary Cache says, once a cache has outgrown its filter: full counters that are decremented deny a key after 20.5 turnovers at a load of 4.", []source{
		{"counters", "Replacements", "4 / 4.000", "in turnovers of the cache", "20.5"},
	}},
}

func runFindings(_ context.Context, job *Job) error {
	table := job.Table("In ten lines", Column{Name: "found"}, Column{Name: "from"})
	for _, f := range findings {
		var from []string
		for _, s := range f.from {
			// One mention for several cells of a row.
			if where := "sim " + s.experiment + ": " + s.table + ", row " + s.row; !slices.Contains(from, where) {
				from = append(from, where)
			}
		}
		table.Row(f.words, strings.Join(from, "; "))
	}
	return nil
}
