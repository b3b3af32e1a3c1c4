package node

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/peering"
)

// answers is a transport with a given answer.
type answers struct {
	code   int
	status string
	err    error
	since  time.Duration // Date; 0 = none
	age    string
}

func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	if a.err != nil {
		return nil, a.err
	}
	h := http.Header{"Cache-Status": {a.status}, "Age": {a.age}}
	if a.since != 0 {
		h.Set("Date", time.Now().Add(-a.since).UTC().Format(http.TimeFormat))
	}
	return &http.Response{StatusCode: a.code, Header: h, Body: http.NoBody}, nil
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
		want string // in the log; "" = nothing
	}{
		{"no connection", answers{err: errors.New("certificate has expired")}, t.Context(), `msg="a sibling cannot be asked" member=b addr=10.0.0.2:80 err="certificate has expired"`},
		{"no patience", answers{err: context.Canceled}, canceled, ""},
		{"refused", answers{code: 403, status: "b; detail=not-a-sibling"}, t.Context(), `msg="a sibling refuses this peer's requests: its log says why" member=b`},
		{"forbidden by the origin", answers{code: 403, status: "b; hit"}, t.Context(), ""},
		{"a hit", answers{code: 200, status: "b; hit"}, t.Context(), ""},
		{"an old one", answers{code: 200, status: "b; hit", since: time.Hour, age: "3595"}, t.Context(), ""},
		{"a clock that is behind", answers{code: 200, status: "b; hit", since: -time.Hour, age: "5"}, t.Context(), ""},
		{"a clock that is ahead", answers{code: 200, status: "b; hit", since: time.Hour, age: "5"}, t.Context(), `msg="this machine's clock is ahead of a sibling's: objects go stale too early here" member=b by=59m55s`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log strings.Builder
				o := newLoggingTransport(tt.as, slog.New(slog.NewTextHandler(&log, nil)))
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
