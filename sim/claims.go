package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/summarycache/summarycache/sim/lab"
)

var _ = experiments.Add(lab.Experiment{
	Name:    "claims",
	Summary: "checks the main results, each by the command that measures it, within a tolerance; some minutes in all",
	Seconds: 46,
	Run:     func(ctx context.Context, job *lab.Job) error { return runClaims(ctx, job, claims) },
})

// A claim is a value in a table of an experiment.
type claim struct {
	says                string
	command             string // without sim
	table, row, column  string // how the table's title begins, the row's first cells, the column's name
	expected, tolerance float64
}

// The tolerance is that of other seeds for what is random, and half of the last digit for the rest.
var claims = []claim{
	{"Table VI of the paper has 4 cells exchanged", "tables --trials 4000", "The documents' printed values", "VI", "wrong", 4, 0},
	{"Summary Cache's tables have 2 wrong cells", "tables --trials 4000", "The documents' printed values", "SC", "wrong", 2, 0},
	{"the paper's first simulation: mean size in bytes", "trials --n 10000 --geometry 14:2 --trials 2000", "Coded size", "n=10000 m=140000 k=2", "mean", 9902.6, 1.5},
	{"its deltas: mean size in bytes; the paper predicts 2066.5", "trials --n 10000 --geometry 32:2 --c 0.05 --trials 2000", "Coded size", "n=10000 m=320000 k=2 c=5 %", "mean", 2076, 3},
	{"conjecture of section IV: inside stays below the limit at c = 0.69", "limits", "Section IV", "0.69", "inside", 0.4996, 0.0001},
	{"and above it at c = 0.7", "limits", "Section IV", "0.7", "inside", 0.5052, 0.0001},
	{"counting filters are best sent with one hash: bits a key", "limits", "Section V", "1", "coded", 11.410, 0.01},
	{"Figure 1 of the paper: f of one hash at 8 bits sent per key, whose standard filter has 0.0216 at best", "figures", "Mitzenmacher, Figure 1", "1", "compressed", 0.010266, 0.00001},
	{"a delta given the old filter, f = 0.001, c = 1 %: bits a replaced key", "figures", "Bits sent per replaced key", "0.01", "coded", 26.12, 0.05},
	{"the same by exclusive-or, by its formula", "figures", "Bits sent per replaced key", "0.01", "xor", 34.07, 0.01},
	{"the same with the paper's geometry", "figures", "Bits sent per replaced key", "0.01", "two", 46.83, 0.01},
	{"one owner per key has more hits where space is short: %", "systems sim/systems/testdata/cache2k-web07.ptrace.gz --caches 4", "cache2k-web07", "one owner per key", "total", 67.15, 0.01},
	{"than ours", "systems sim/systems/testdata/cache2k-web07.ptrace.gz --caches 4", "cache2k-web07", "ours", "total", 66.69, 0.05},
	{"lists of hashes cost the same at a trace's pace: bytes a request", "systems sim/systems/testdata/cache2k-web07.ptrace.gz --caches 4", "cache2k-web07",
		"truncated hashes, bits as planned, when ours would", "update_bytes", 20.73, 0.1},
	{"as ours", "systems sim/systems/testdata/cache2k-web07.ptrace.gz --caches 4", "cache2k-web07", "ours, copies as all else", "update_bytes", 20.52, 0.1},
}

// runClaims runs each command once.
func runClaims(ctx context.Context, job *lab.Job, claims []claim) error {
	table := job.Table("Claims",
		lab.Column{Name: "claim"}, lab.Column{Name: "command"}, lab.Column{Name: "seconds", Format: "%.1f", Loose: lab.AnyValue},
		lab.Column{Name: "expected", Format: "%.6g"}, lab.Column{Name: "tolerance", Format: "%.3g"}, lab.Column{Name: "measured", Format: "%.6g", Loose: lab.AnyValue},
		lab.Column{Name: "pass"})
	done := map[string][]*lab.Table{}
	failed := 0
	for i, c := range claims {
		job.Progress(i, len(claims), "%s", c.command)
		tables, ran := done[c.command]
		var seconds any
		if !ran {
			begin := time.Now()
			part, err := lab.Program{Experiments: experiments}.Do(ctx, append(strings.Fields(c.command), fmt.Sprintf("--seed=%d", job.Seed)), io.Discard)
			if err != nil {
				return fmt.Errorf("sim %s: %w", c.command, err)
			}
			tables, seconds = part.Tables, time.Since(begin).Seconds()
			done[c.command] = tables
		}
		measured, err := c.find(tables)
		if err != nil {
			return fmt.Errorf("sim %s: %w", c.command, err)
		}
		pass := "yes"
		if math.Abs(measured-c.expected) > c.tolerance+1e-9 {
			pass = "no"
			failed++
		}
		table.Row(c.says, "sim "+c.command, seconds, c.expected, c.tolerance, measured, pass)
	}
	table.Note("Seconds are those of the command's first claim. Each command can be run alone; it takes less than a minute.")
	if failed > 0 {
		job.Failed = fmt.Errorf("%d of %d claims fail", failed, len(claims))
	}
	return nil
}

func (c claim) find(tables []*lab.Table) (float64, error) {
	for _, t := range tables {
		if strings.HasPrefix(t.Title, c.table) {
			return t.Find(c.row, c.column)
		}
	}
	return 0, fmt.Errorf("no table %q", c.table)
}
