package demo

import (
	"context"
	"io"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/summarycache/summarycache/sim/workload"
)

// left lists the files that a demo left behind in its temporary directory.
func left(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// The counters of peers, clients and origin agree.
func TestRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tr := workload.Synthetic(workload.Model{Requests: 600, Objects: 150, Exponent: 0.9, Seed: 2})
	var progress strings.Builder
	r, err := Run(t.Context(), Options{Peers: 3, Trace: tr, Rate: 200, Seed: 2, TempDir: dir, Progress: &progress, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	total := r.Total
	if r.Errors != 0 || total.Requests != 600 {
		t.Errorf("%d errors of %d requests: %s", r.Errors, total.Requests, r.FirstError)
	}
	if sum := total.Local + total.Sibling + total.Shared + total.OriginFetches; sum != total.Requests+total.Overtaken {
		t.Errorf("the outcomes sum to %d of %d requests: %+v", sum, total.Requests, total)
	}
	if r.Compare[0].OriginFetches != total.OriginFetches {
		t.Errorf("peers count %d origin fetches, the comparison %d", total.OriginFetches, r.Compare[0].OriginFetches)
	}
	checkOrigin(t, r)
	if total.Sibling+total.FalseHits+total.SiblingErrors > total.SiblingRequests {
		t.Errorf("more answers of siblings than questions: %+v", total)
	}
	if total.Sibling < 10 || total.BytesSent == 0 || total.BytesReceived == 0 || total.DeltasReceived == 0 {
		t.Errorf("hardly any cooperation: %+v", total)
	}
	floor, icp, none := r.Compare[3], r.Compare[1], r.Compare[2]
	if floor.OriginFetches != int64(len(tr.Sizes)) || icp.OriginFetches > total.OriginFetches || none.OriginFetches < total.OriginFetches ||
		icp.OriginFetches+total.Missed != total.OriginFetches {
		t.Errorf("comparison %+v does not fit %+v", r.Compare, total)
	}
	if want := 2 * 2 * (total.Sibling + total.OriginFetches - total.Overtaken); icp.Messages != want {
		t.Errorf("ICP would have sent %d datagrams, want %d", icp.Messages, want)
	}
	if names := left(t, dir); len(names) > 0 {
		t.Errorf("left behind: %v", names)
	}
	if !strings.Contains(progress.String(), "600 of 600 requests: ") {
		t.Errorf("progress: %s", progress.String())
	}
}

// checkOrigin compares the counters of the peers with those of the origin. A fetch that a sibling
// overtook may have been cancelled before it reached the origin.
func checkOrigin(t *testing.T, r *Result) {
	t.Helper()
	if unseen := r.Total.OriginFetches - int64(r.OriginSeen); unseen < 0 || unseen > r.Total.Overtaken {
		t.Errorf("peers count %d origin fetches, %d of them overtaken, the origin %d", r.Total.OriginFetches, r.Total.Overtaken, r.OriginSeen)
	}
}

// A canceller cancels when the progress shows that requests are done.
type canceller struct{ cancel func() }

var begun = regexp.MustCompile(`[1-9][0-9]* of 100,000 requests`)

func (c canceller) Write(p []byte) (int, error) {
	if begun.Match(p) {
		c.cancel()
	}
	return len(p), nil
}

func TestInterruptedRunLeavesNothing(t *testing.T) {
	t.Parallel()
	tr := workload.Synthetic(workload.Model{Requests: 100_000, Objects: 100, Seed: 2})
	for _, starting := range []bool{true, false} {
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		if starting {
			cancel()
		}
		r, err := Run(ctx, Options{Peers: 2, Trace: tr, Rate: 500, TempDir: dir, Progress: canceller{cancel}, Live: true, Logger: slog.New(slog.DiscardHandler)})
		cancel()
		if err == nil || err.Error() != "interrupted" {
			t.Errorf("starting = %v: Run = %v, want interrupted", starting, err)
		}
		if (r == nil) != starting {
			t.Fatalf("starting = %v: the result is %v", starting, r)
		}
		if r != nil && (r.Workload.Requests == 0 || r.Workload.Requests == len(tr.Requests) || r.Total.Requests == 0 || r.Errors > 0) {
			t.Errorf("the result is of %d requests, %d failed: %+v", r.Workload.Requests, r.Errors, r.Total)
		}
		if names := left(t, dir); len(names) > 0 {
			t.Errorf("starting = %v: left behind: %v", starting, names)
		}
	}
}

// Forward proxies cooperate like reverse proxies.
func TestRunForward(t *testing.T) {
	t.Parallel()
	tr := workload.Synthetic(workload.Model{Requests: 300, Objects: 50, Exponent: 0.9, Seed: 2})
	r, err := Run(t.Context(), Options{Peers: 2, Trace: tr, Rate: 200, Seed: 2, TempDir: t.TempDir(), Forward: true, Progress: io.Discard, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if r.Errors != 0 || r.Total.Requests != 300 || r.Total.Sibling == 0 {
		t.Errorf("%d errors, the first: %s; %+v", r.Errors, r.FirstError, r.Total)
	}
	checkOrigin(t, r)
}
