package proxy

import (
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// The wall clock may jump: what a process received grows old as time passes, not
// as the clock says, and what an earlier process received in the future is stale.
func TestClockJumps(t *testing.T) {
	const day = int64(24 * time.Hour)
	for name, tt := range map[string]struct {
		stored, later int64         // how far the clock is ahead when the response is stored, and from then on
		after         time.Duration // when it is asked for again
		restart       bool
		fetches       int
	}{
		"put back, fresh":               {day, 0, 2 * time.Second, false, 1},
		"put back, stale":               {day, 0, 4 * time.Second, false, 2},
		"put back, stale for long":      {day, 0, 23 * time.Hour, false, 2},
		"put forward, fresh":            {0, day, 2 * time.Second, false, 1},
		"put forward, stale":            {0, day, 4 * time.Second, false, 2},
		"right, restarted":              {0, 0, 2 * time.Second, true, 1},
		"put back, restarted":           {day, 0, time.Second, true, 2},
		"put forward, restarted":        {0, day, time.Second, true, 2},
		"put back by little, restarted": {int64(time.Minute), 0, time.Second, true, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			var ahead atomic.Int64
			now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
			w := newWorld(t, false, func(w http.ResponseWriter, r *http.Request, n int) {
				w.Header().Set("Cache-Control", "max-age=3")
				w.Header().Set("Date", now().UTC().Format(http.TimeFormat)) // its clock is off as ours is
				w.Write([]byte("x"))
			})
			w.tune = func(c *Config) { c.Now = now }
			dir := t.TempDir()
			ahead.Store(tt.stored)
			h := w.start("a", dir)
			defer w.close()
			w.get("a", "/x")
			synctest.Wait()
			ahead.Store(tt.later)
			if tt.restart {
				if err := h.Close(); err != nil {
					t.Fatal(err)
				}
				delete(w.peers, "a")
				w.start("a", dir)
			}
			time.Sleep(tt.after)
			if w.get("a", "/x"); w.origin.count() != tt.fetches {
				t.Errorf("%s: %d origin requests, want %d", name, w.origin.count(), tt.fetches)
			}
		})
	}
}
