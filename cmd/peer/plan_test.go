package main

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/summarycache/summarycache/digest"
)

// TestPlanIsWhatRunDoes compares the planned geometry with the one that run makes from the printed
// settings.
func TestPlanIsWhatRunDoes(t *testing.T) {
	for _, args := range [][]string{
		{"--peers", "8"},
		{"--peers", "8", "--memory", "1MiB"}, // where four hashes would have fewer false positives
		{"--peers", "8", "--memory", "2MiB", "--churn", "20"},
		{"--digest-size", "100KiB"},
		{"--memory", "1MiB"}, // more than is of use: the most bits that there are
		{"--peers", "8", "--churn", "20", "--false-candidates", "1", "--resend", "1"}, // where 32 would take fewer bytes
	} {
		code, stdout, stderr := call(t, append([]string{"plan", "--objects", "200000", "--json"}, args...)...)
		var p planned
		if err := json.Unmarshal([]byte(stdout), &p); code != 0 || err != nil {
			t.Fatalf("plan %q = %d, %v: %s", args, code, err, stderr)
		}
		var objects uint64
		var rate float64
		if _, err := fmt.Sscanf(p.Run, "--objects %d --false-positives %g", &objects, &rate); err != nil {
			t.Fatalf("plan %q says %q: %v", args, p.Run, err)
		}
		g, err := digest.GeometryFor(objects, rate)
		if err != nil || g.Hashes != p.Hashes || math.Abs(float64(g.Bits)/float64(p.Bits)-1) > 0.01 {
			t.Errorf("plan %q has %d bits and %d hashes, run %v, %v", args, p.Bits, p.Hashes, g, err)
		}
	}
}
