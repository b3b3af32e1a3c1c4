package admin

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite METRICS.md")

const metricsFile = "../../METRICS.md"

// document is the list of metrics in METRICS.md.
func document() string {
	var b strings.Builder
	b.WriteString(`# Metrics

The metrics at ` + "`/metrics`" + ` on the admin port, besides those of the Go runtime and the process (` + "`go_*`, `process_*`" + `).
Counters start at 0 with the process. Generated from the program: ` + "`go test ./cmd/peer/internal/admin -update`" + `.

` + "[metrics.txt](internal/admin/metrics.txt) says where the same numbers are in `/status.json`: - subtracts, and ! is 1 for what is empty." + `

| name | type | label | meaning |
|---|---|---|---|
`)
	for _, f := range families() {
		kind := "gauge"
		if f.counts() {
			kind = "counter"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.name, kind, f.label, f.help)
	}
	b.WriteString("| `peer_request_duration_seconds` | histogram | outcome | Time from a request's arrival to the end of its answer, by outcome as in peer_requests_total. |\n")
	return b.String()
}

func TestMetricsAreDocumented(t *testing.T) {
	if *update {
		if err := os.WriteFile(metricsFile, []byte(document()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(metricsFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != document() {
		t.Errorf("METRICS.md is not what the program shows: run go test ./cmd/peer/internal/admin -update")
	}
}

func TestMetrics(t *testing.T) {
	_, get := serve(t, example())
	code, text := get("/metrics")
	if code != 200 {
		t.Fatalf("GET /metrics = %d: %s", code, text)
	}
	for _, want := range []string{
		"\npeer_ready 1\n",
		`peer_build_info{version="v1.2.3"} 1`,
		`peer_requests_total{outcome="local-hit"} 9000`,
		`peer_not_stored_total{reason="no-lifetime"} 300`,
		`peer_not_stored_total{reason="no-store"} 0`,
		`peer_sibling_requests_total{result="hit"} 790`,
		`peer_sibling_requests_total{result="unused"} 10`,
		`peer_sibling_requests_total{result="false-hit"} 7`,
		`peer_digest_received_bytes_total{kind="delta"} 3000`,
		`peer_member_up{member="peer-2"} 1`,
		`peer_member_up{member="peer-3"} 0`,
		"peer_certificate_end_time_seconds 1.767409445e+09",
		`peer_request_duration_seconds_count{outcome="local-hit"} 1`,
		`peer_memory_held_bytes{account="requests"} 3.145728e+07`,
		`peer_memory_refused_total{account="requests"} 7`,
		"go_goroutines ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %q", want)
		}
	}
	if strings.Contains(text, `peer_member_up{member="peer-4"}`) {
		t.Error("a peer that took its leave is said to be down")
	}
	for _, f := range families() {
		if !strings.Contains(text, "# HELP "+f.name+" "+f.help) {
			t.Errorf("%s is not shown", f.name)
		}
	}
}
