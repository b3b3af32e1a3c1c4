package demo

import (
	"strings"
	"testing"

	"github.com/summarycache/summarycache/cmd/peer/internal/replay"
)

func TestText(t *testing.T) {
	big := Row{
		Name: "peer-1", Counts: replay.Counts{Requests: 12_345_678, Local: 9_876_543, Sibling: 1_234_567}, OriginFetches: 1_234_567,
		FalseHits: 123, Missed: 4567, BytesSent: 123 << 20, BytesReceived: 1023 << 20, DeltasReceived: 123_456, AdvertsSent: 1_234_567,
		SiblingRequests: 1000,
	}
	r := &Result{
		Workload: Workload{Name: "trace.gz", Requests: 12_345_678, Objects: 1_000_000, Bytes: 1 << 40, Clients: 1694},
		Peers:    []Row{big, big}, Total: big, OverFloor: 0.0123, FalseShare: 0.0045, LagMean: 0.0051, Checked: 1 << 30,
		Compare: []Alternative{
			{"summarycache", 1_234_567, 1 << 30, 12_345, 1 << 20}, {"icp", 1_230_000, 1 << 30, 44, 99},
			{"none", 3_000_000, 1 << 31, 0, 0}, {"floor", 1_000_000, 1 << 30, 0, 0},
		},
	}
	text := Text(r)
	for _, want := range []string{
		"1,694 clients assigned to 2 peers by hash", "0.45 % of 1,000", "1.23 % more fetches than the floor",
		"ICP, asking all at each miss", "no error; all 1.00 GiB of bodies",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, line := range strings.Split(text, "\n") {
		if len(line) > 80 {
			t.Errorf("a line of %d columns: %s", len(line), line)
		}
	}
	r.Workload.Requests, r.Seconds = 3000, 10
	if text = Text(r); !strings.Contains(text, "cost at 300 a second,") {
		t.Errorf("not at 300 a second:\n%s", text)
	}
	if strings.Contains(text, "late  ") || strings.Contains(text, "failed  ") {
		t.Errorf("complaints of a run that went well:\n%s", text)
	}
	r.Errors, r.FirstError, r.Workload.Clients = 3, "request 7: oh", 0
	r.Total.SiblingErrors, r.Workload.Requests, r.Workload.Rate, r.Seconds = 1, 3000, 300, 15
	text = Text(r)
	for _, want := range []string{"3 ERRORS, the first: request 7: oh", "each request assigned to one of 2 peers at random",
		"failed      1 request to siblings", "late        200 requests a second, not 300"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
