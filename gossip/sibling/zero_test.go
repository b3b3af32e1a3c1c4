package sibling

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/summarycache/summarycache/gossip/invalidation"
	"github.com/summarycache/summarycache/gossip/peering"
)

// TestZeroValues: a type without its constructor returns an error that names it, or behaves as if
// it were empty.
func TestZeroValues(t *testing.T) {
	ctx := t.Context()
	request := func() *http.Request { return httptest.NewRequest("GET", "http://site.test/x", strings.NewReader("")) }
	question := func() *http.Request {
		r := request()
		r.Header.Set("Cache-Control", "only-if-cached")
		return r
	}
	status := func(h http.Handler, r *http.Request) int {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		return rec.Code
	}
	for name, tc := range map[string]struct {
		err  error
		want error
	}{
		"Transport.RoundTrip":        {func() error { _, err := new(Transport).RoundTrip(request()); return err }(), errZero},
		"Transport of a zero Client": {func() error { _, err := (&Transport{Siblings: new(Client)}).RoundTrip(request()); return err }(), errZero},
		"Lookup.Next":                {func() error { _, err := new(Lookup).Next(ctx, nil); return err }(), errZero},
	} {
		if !errors.Is(tc.err, tc.want) {
			t.Errorf("%s: %v, want %v", name, tc.err, tc.want)
		}
	}
	for name, got := range map[string]int{
		"Handler":            status(new(Handler), request()),
		"Handler, question":  status(new(Handler), question()),
		"Coalescer":          status(new(coalescer), httptest.NewRequest("GET", peering.CoalescePath+"?key=1", nil)),
		"Handler, no origin": status(&Handler{Cache: new(Transport)}, question()),
	} {
		if got < 400 {
			t.Errorf("%s answers %d", name, got)
		}
	}
	c, h, co := new(Client), new(Health), new(coalescer)
	c.Gone("x")
	c.CloseIdleConnections()
	c.originRoundTrip("x")
	co.Joined()
	co.Served(nil)
	co.Invalidated(invalidation.Target{Kind: invalidation.Everything}, 1)
	h.Of("x")
	h.record(outcome{peer: "x", result: answered})
	if c.Lookup(LookupRequest{}).Left() != 0 || c.Stats() != (Stats{}) {
		t.Error("the zero Client has candidates or counts")
	}
	if _, ok := co.InFlight(ctx, "x", 0); ok {
		t.Error("the zero Coalescer names a peer")
	}
}
