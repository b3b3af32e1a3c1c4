package main

import (
	"context"
	"strings"
	"testing"

	"github.com/summarycache/summarycache/sim/lab"
)

// TestClaims runs cheap claims: true ones pass, a wrong one fails the command, and one that names no
// value is an error.
func TestClaims(t *testing.T) {
	var cheap []claim
	for _, c := range claims {
		if c.command == "limits" {
			cheap = append(cheap, c)
		}
	}
	job := lab.Quiet(1)
	if err := runClaims(context.Background(), job, cheap); err != nil || job.Failed != nil || len(job.Tables[0].Rows) != len(cheap) || len(cheap) < 3 {
		t.Fatalf("%d claims: %v, %v", len(cheap), err, job.Failed)
	}
	off := cheap[1]
	off.expected += 2 * off.tolerance
	withExperiment(t, lab.Experiment{Name: "off", Run: func(ctx context.Context, job *lab.Job) error {
		return runClaims(ctx, job, []claim{cheap[0], off})
	}})
	if code, out, errs := call("off"); code != 1 || !strings.Contains(errs, "1 of 2 claims fail") || !strings.Contains(out, "no") {
		t.Errorf("a wrong claim: %d, %s, %s", code, out, errs)
	}
	for _, lost := range []claim{{command: "limits", table: "Section X"}, {command: "limits", table: "Section IV", row: "0.123", column: "inside"},
		{command: "limits", table: "Section IV", row: "0.69", column: "outside"}, {command: "limits", table: "Section IV", row: "0.69", column: "holds"}, {command: "limit"}} {
		if err := runClaims(context.Background(), lab.Quiet(1), []claim{lost}); err == nil {
			t.Errorf("%+v is found", lost)
		}
	}
}

// TestClaimsCommands: each claim's command is understood as far as a flag that does not exist.
func TestClaimsCommands(t *testing.T) {
	for _, c := range claims {
		code, _, errs := call(append(strings.Fields(c.command), "--nothing")...)
		if code != 2 || !strings.Contains(errs, "not defined: -nothing") {
			t.Errorf("sim %s: %d, %s", c.command, code, errs)
		}
	}
	if n := len(claims); n != 15 {
		t.Errorf("%d claims", n)
	}
}
