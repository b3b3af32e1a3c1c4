package proxy

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// misdated is an origin whose clock differs, and which has its answers from a cache.
type misdated struct {
	off time.Duration
	age string
}

func (d *misdated) RoundTrip(r *http.Request) (*http.Response, error) {
	h := http.Header{"Date": {time.Now().Add(d.off).UTC().Format(http.TimeFormat)}}
	if d.age != "" {
		h.Set("Age", d.age)
	}
	return &http.Response{StatusCode: 200, Header: h, Body: http.NoBody}, nil
}

// Origins whose dates are in the past make everything stale, and no request fails: the log says so, once an hour.
func TestClocksOfOrigins(t *testing.T) {
	for name, c := range map[string]struct {
		misdated
		lines int // of 90 minutes
		want  string
	}{
		"right":          {misdated{0, ""}, 0, ""},
		"a day behind":   {misdated{-24 * time.Hour, ""}, 2, "origin=a by=24h0m0s"},
		"a day ahead":    {misdated{24 * time.Hour, ""}, 0, ""},
		"a little":       {misdated{-9 * time.Second, ""}, 0, ""},
		"stored":         {misdated{-24 * time.Hour, "86400"}, 0, ""},
		"stored, behind": {misdated{-24 * time.Hour, "3600"}, 2, "origin=a by=23h0m0s"},
		"a broken age":   {misdated{-24 * time.Hour, "a day"}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				to := slog.New(slog.NewTextHandler(&log, nil))
				o := &origins{RoundTripper: &c.misdated, failings: &failings{log: to}, clocks: &clocks{log: to}}
				for range 90 * 60 {
					r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://a/", nil)
					if _, err := o.RoundTrip(r); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Second)
				}
				if got := strings.Count(log.String(), "clock is ahead"); got != c.lines || !strings.Contains(log.String(), c.want) {
					t.Errorf("%d lines, want %d with %q:\n%s", got, c.lines, c.want, &log)
				}
			})
		})
	}
}
