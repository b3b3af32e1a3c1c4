package sibling

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
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
		"Handler, no origin": status(&Handler{Cache: new(Transport)}, question()),
	} {
		if got < 400 {
			t.Errorf("%s answers %d", name, got)
		}
	}
	c, h := new(Client), new(Health)
	c.Gone("x")
	c.CloseIdleConnections()
	c.originRoundTrip("x")
	h.Of("x")
	h.record(outcome{peer: "x", result: answered})
	if c.Lookup(LookupRequest{}).Left() != 0 || c.Stats() != (Stats{}) {
		t.Error("the zero Client has candidates or counts")
	}
}
