package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
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
		{"--memory", "1MiB"}, // more than is of use: the most bits that there are
		{"--peers", "8", "--churn", "20", "--false-candidates", "1"},
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

// TestPlanSaysWhichWay: the plan of a cluster says whether digests are right, and from which size of body on owner hashing is not.
func TestPlanSaysWhichWay(t *testing.T) {
	for _, c := range []struct {
		objects, peers string
		flat           bool
		body           float64 // about
		asking         float64 // about
	}{
		{"100000", "87", true, 1 << 10, 2500},
		{"100000", "709", true, 10 << 10, 2500},
		{"100000", "3000", false, 43 << 10, 2500},
		{"10000", "3000", true, 43 << 10, 2500},
		{"10000", "16384", false, 240 << 10, 2500},
	} {
		args := []string{"plan", "--objects", c.objects, "--peers", c.peers, "--churn", "16.67", "--interval", "600ms", "--false-candidates", "0.01"}
		code, stdout, stderr := call(t, append(args, "--json")...)
		var p planned
		if err := json.Unmarshal([]byte(stdout), &p); code != 0 || err != nil {
			t.Fatalf("%q = %d, %v: %s", args, code, err, stderr)
		}
		t.Logf("%s objects, %s peers: memory %.3g, index %.3g, joining %.3g, bodies %.3g, Redis %.3g", c.objects, c.peers, p.MemoryBytes, p.IndexBytes,
			p.JoiningBytes, p.OwnerBodyBytes, p.RedisBytes)
		if p.Flat != c.flat || p.OwnerBodyBytes < c.body/2 || p.OwnerBodyBytes > 2*c.body {
			t.Errorf("%s objects, %s peers: digests are right %v, owner hashing below %.0f B; want %v and about %.0f", c.objects, c.peers, p.Flat,
				p.OwnerBodyBytes, c.flat, c.body)
		}
		if p.AskingPerSecond < c.asking/1.3 || p.AskingPerSecond > 1.3*c.asking {
			t.Errorf("%s objects, %s peers: one that asks takes %.0f B/s, want about %.0f", c.objects, c.peers, p.AskingPerSecond, c.asking)
		}
		if _, text, _ := call(t, args...); strings.Contains(strings.Join(strings.Fields(text), " "), "each peer keeps everybody's") != c.flat || strings.Contains(text, "--keep-digests none") == c.flat || !strings.Contains(text, "owner hashing") {
			t.Errorf("%s", text)
		}
	}
}
