package node

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/summarycache/summarycache/gossip/peering"
)

// answers is a transport with a given answer.
type answers struct {
	code   int
	status string
	err    error
}

func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	if a.err != nil {
		return nil, a.err
	}
	return &http.Response{StatusCode: a.code, Header: http.Header{"Cache-Status": {a.status}}, Body: http.NoBody}, nil
}

func (answers) CloseIdleConnections() {}

// The log says why requests to a sibling fail.
func TestSiblingsThatRefuse(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name string
		as   answers
		ctx  context.Context
		gone bool
		want string // in the log; "" = nothing
	}{
		{"no connection", answers{err: errors.New("certificate has expired")}, t.Context(), false, `msg="a sibling cannot be asked" member=b addr=10.0.0.2:80 err="certificate has expired"`},
		{"no patience", answers{err: context.Canceled}, canceled, false, ""},
		{"it has left", answers{err: errors.New("connection refused")}, t.Context(), true, ""},
		{"refused", answers{code: 403, status: "b; detail=not-a-sibling"}, t.Context(), false, `msg="a sibling refuses this peer's requests: its log says why" member=b`},
		{"forbidden by the origin", answers{code: 403, status: "b; hit"}, t.Context(), false, ""},
		{"a hit", answers{code: 200, status: "b; hit"}, t.Context(), false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log strings.Builder
				o := loggingTransport{tt.as, func(string) bool { return tt.gone }, slog.New(slog.NewTextHandler(&log, nil))}
				ask := func(peer string) {
					r, _ := http.NewRequestWithContext(peering.WithPeer(tt.ctx, peer), "GET", "http://10.0.0.2:80/", nil)
					if resp, err := o.RoundTrip(r); !errors.Is(err, tt.as.err) || err == nil && resp.StatusCode != tt.as.code {
						t.Errorf("RoundTrip = %v, %v", resp, err)
					}
				}
				ask("b")
				if lines := strings.Count(log.String(), "\n"); !strings.Contains(log.String(), tt.want) || (lines == 1) != (tt.want != "") {
					t.Errorf("%d lines:\n%s", lines, log.String())
				}
			})
		})
	}
}
