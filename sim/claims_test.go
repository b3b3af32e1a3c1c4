package main

import (
	"strings"
	"testing"

	"github.com/summarycache/summarycache/sim/lab"
)

// TestClaims runs cheap claims: true ones pass, a wrong one fails the command after the table is printed, and one that
// names no value is an error.
func TestClaims(t *testing.T) {
	var cheap []claim
	for _, c := range claims {
		if c.command == limitsCommand {
			cheap = append(cheap, c)
		}
	}
	job := lab.Quiet(1)
	if err := runClaims(job, cheap); err != nil || job.Failed != 0 || len(job.Tables[0].Rows) != len(cheap) || len(cheap) < 3 {
		t.Fatalf("%d claims: %v, %d fail", len(cheap), err, job.Failed)
	}
	off := cheap[1]
	off.expected += 2*off.tolerance + 1e-4
	withExperiment(t, lab.Experiment{Name: "off", Run: func(job *lab.Job) error { return runClaims(job, []claim{cheap[0], off}) }})
	if code, out, errs := call("off"); code != 1 || !strings.Contains(errs, "1 of 2 claims fail") || !strings.Contains(out, " no\n") {
		t.Errorf("a wrong claim: %d, %s, %s", code, out, errs)
	}
	for _, lost := range []claim{
		{command: limitsCommand, table: "Section X"}, {command: limitsCommand, table: "Section IV: log2", row: "0.123", column: "inside"},
		{command: limitsCommand, table: "Section IV: log2", row: "0.69", column: "outside"},
		{command: limitsCommand, table: "Section IV: log2", row: "0.69", column: "holds"}, {command: "./sim limit"}, {command: "-C nowhere ."},
	} {
		if err := runClaims(lab.Quiet(1), []claim{lost}); err == nil {
			t.Errorf("%+v is found", lost)
		}
	}
}

// TestClaimsCommands: each claim's command is understood as far as a flag that does not exist.
func TestClaimsCommands(t *testing.T) {
	for _, c := range claims {
		args := strings.Fields(c.command)
		if args[0] != "./sim" {
			continue // a module of its own has a test of its own
		}
		code, _, errs := call(append(args[1:], "--nothing")...)
		if code != 2 || !strings.Contains(errs, "not defined: -nothing") {
			t.Errorf("go run %s: %d, %s", c.command, code, errs)
		}
	}
	if n := len(claims); n < 15 {
		t.Errorf("%d claims", n)
	}
}
