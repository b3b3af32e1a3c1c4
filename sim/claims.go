package main

import (
	"bytes"
	"fmt"
	"math"
	"os/exec"
	"strings"
	"time"

	"github.com/summarycache/summarycache/sim/lab"
)

func init() { // since a claim runs the other experiments
	experiments.Add(lab.Experiment{
		Name: "claims",
		Summary: "checks the main results, each by the command that measures it, within a tolerance; some " +
			"minutes in all",
		Seconds: -1,
		Run:     func(job *lab.Job) error { return runClaims(job, claims) },
	})
}

// A claim is a value in a table that a command prints.
type claim struct {
	says    string
	command string // after go run
	// how the table's title begins, the row's first cells, and the column's name, all as in CSV
	table, row, column  string
	expected, tolerance float64
}

const (
	tablesCommand   = "./sim tables --trials 4000"
	trialsCommand   = "./sim trials --trials 2000"
	limitsCommand   = "./sim limits"
	figuresCommand  = "./sim figures"
	systemsCommand  = "./sim systems"
	exchangeCommand = "./sim exchange --peers 100 --loss 0"
	ratelessCommand = "-C sim/rateless . --trials 3"

	printed = "The documents' printed values"
	web     = "cache2k-web07: 76118 requests for 20484 objects, 4 caches"
	paced   = "elastic-apache, 4 caches: bytes of all messages"
	change  = "Bytes for a change"
)

// The tolerance is that of other seeds for what is random, and half of the last digit for the rest.
var claims = []claim{
	{"Table VI of the paper has 4 cells exchanged", tablesCommand, printed, "VI", "wrong", 4, 0},
	{"Summary Cache's tables have 2 wrong cells", tablesCommand, printed, "SC", "wrong", 2, 0},
	{"the paper's first simulation: mean bytes", trialsCommand, "Coded size", "n=10000 m=140000 k=2",
		"mean", 9903.6, 1.5},
	{"its deltas: mean bytes, where the paper predicts 2066.5", trialsCommand, "Coded size",
		"n=10000 m=320000 k=2 c=5 %", "mean", 2076, 3},
	{"conjecture of section IV: below its limit, 0.5, at c = 0.69", limitsCommand, "Section IV: log2", "0.69", "inside",
		0.4996, 0.0001},
	{"and above it at c = 0.7", limitsCommand, "Section IV: log2", "0.7", "inside", 0.5052, 0.0001},
	{"counting filters are best sent with one hash: bits a key", limitsCommand, "Section V", "1", "coded", 11.41, 0.01},
	{"f = 0.001 by package arith: bits a key", figuresCommand, "Bits sent per key", "0.001", "one_coded", 11.41, 0.01},
	{"a delta given the old set, c = 1 %: bits a replaced key", figuresCommand, "Bits sent per replaced", "0.01",
		"coded", 26.12, 0.05},
	{"the same with the paper's geometry, by exclusive-or", figuresCommand, "Bits sent per replaced", "0.01",
		"two", 46.83, 0.005},
	{"one owner per key has more hits where space is short: %", systemsCommand, web, "one owner per key",
		"total", 67.15, 0.01},
	{"than ours", systemsCommand, web, "ours", "total", 66.69, 0.1},
	{"lists of hashes cost the same at a trace's pace: bytes", systemsCommand, web,
		"truncated hashes, bits as planned, when ours would",
		"update_bytes", 20.7, 0.2},
	{"as ours", systemsCommand, web, "ours, copies as all else", "update_bytes", 20.4, 0.2},
	{"ICP: bytes a request", systemsCommand, paced, "1", "way0", 138, 1},
	{"at one request a second ours costs more", systemsCommand, paced, "1", "way2", 615, 5},
	{"and at 100 less", systemsCommand, paced, "100", "way2", 16.4, 0.5},
	{"where Squid's digests find less, %", systemsCommand, paced, "100", "way1_remote", 2.3, 0.2},
	{"than ours", systemsCommand, paced, "100", "way2_remote", 10.7, 0.2},
	{"a change is at all of 100 peers after, median s", exchangeCommand, "Lag", "100", "all", 0.7, 0.1},
	{"a rateless IBLT in our deltas, 100 keys of 100,000", ratelessCommand, change, "100", "to_delta", 5.6, 0.6},
	{"and in our snapshots", ratelessCommand, change, "100", "to_snapshot", 0.0175, 0.002},
}

// runClaims runs each command once.
func runClaims(job *lab.Job, claims []claim) error {
	table := job.Table("Claims",
		lab.Column{Name: "claim"}, lab.Column{Name: "command"}, lab.Column{Name: "seconds", Format: "%.1f"},
		lab.Column{Name: "expected", Format: "%.6g"}, lab.Column{Name: "tolerance", Format: "%.3g"},
		lab.Column{Name: "measured", Format: "%.6g"}, lab.Column{Name: "pass"})
	done := map[string][]*lab.Table{}
	for i, c := range claims {
		job.Progress("claim %d of %d: go run %s", i+1, len(claims), c.command)
		var seconds any
		if done[c.command] == nil {
			begin := time.Now()
			found, err := c.run(job.Seed)
			if err != nil {
				return fmt.Errorf("go run %s: %w", c.command, err)
			}
			done[c.command], seconds = found, time.Since(begin).Seconds()
		}
		measured, err := c.find(done[c.command])
		if err != nil {
			return fmt.Errorf("go run %s: %w", c.command, err)
		}
		pass := "yes"
		if math.Abs(measured-c.expected) > c.tolerance+1e-9 {
			pass = "no"
			job.Failed++
		}
		table.Row(c.says, "go run "+c.command, seconds, c.expected, c.tolerance, measured, pass)
	}
	table.Note("Seconds are those of a command's first claim. Each command can be run alone.")
	return nil
}

// run runs the command, that of sim itself within this process.
func (c claim) run(seed uint64) ([]*lab.Table, error) {
	args := append(strings.Fields(c.command), "--csv", fmt.Sprintf("--seed=%d", seed))
	var out, errs bytes.Buffer
	if args[0] == "./sim" {
		if run(args[1:], &out, &errs) != 0 {
			return nil, fmt.Errorf("%s", errs.Bytes())
		}
	} else {
		cmd := exec.Command("go", append([]string{"run"}, args...)...)
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("%w: %s", err, errs.Bytes())
		}
	}
	return lab.ReadTables(out.String())
}

func (c claim) find(tables []*lab.Table) (float64, error) {
	for _, t := range tables {
		if strings.HasPrefix(t.Title, c.table) {
			return t.Find(c.row, c.column)
		}
	}
	return 0, fmt.Errorf("no table %q", c.table)
}
