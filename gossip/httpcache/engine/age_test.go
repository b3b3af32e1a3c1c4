package engine

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// The wall clock may jump. What this process received ages by elapsed time, not by the clock. What
// an earlier process received in the future is stale.
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
			w := newCluster(t, func(w http.ResponseWriter, r *http.Request, n int) {
				w.Header().Set("Cache-Control", "max-age=3")
				w.Header().Set("Date", now().UTC().Format(http.TimeFormat)) // its clock is off as ours is
				w.Write([]byte("x"))
			})
			w.tune = func(c *peerConfig) { c.Now = now }
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
				w.start("a", dir)
			}
			time.Sleep(tt.after)
			if w.get("a", "/x"); w.origin.count() != tt.fetches {
				t.Errorf("%s: %d origin requests, want %d", name, w.origin.count(), tt.fetches)
			}
		})
	}
}

// A request that has waited is answered as of the end of its wait: Age includes the wait, and what
// has become stale meanwhile is not fresh.
func TestAgeAfterWaiting(t *testing.T) {
	t.Run("for an origin that fails", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newCluster(t, func(w http.ResponseWriter, r *http.Request, n int) {
				w.Header().Set("Cache-Control", "max-age=1, stale-if-error=600")
				if n > 0 {
					time.Sleep(20 * time.Second)
					w.WriteHeader(http.StatusServiceUnavailable)
				}
				w.Write([]byte("x"))
			}, "a")
			defer w.close()
			w.get("a", "/x")
			time.Sleep(10 * time.Second)
			if r := w.get("a", "/x"); r.StatusCode != 200 || r.Header.Get("Age") != "30" || !strings.Contains(r.status(), "ttl=-29") {
				t.Errorf("status %d, Age %q, %s; want Age 30, ttl=-29", r.StatusCode, r.Header.Get("Age"), r.status())
			}
		})
	})
	for _, age := range []int{6, 11} { // of what another request stored meanwhile
		t.Run(fmt.Sprintf("for a response that is %d s old then", age), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newCluster(t, func(w http.ResponseWriter, r *http.Request, n int) {
					w.Header().Set("Cache-Control", "max-age=10")
					if n == 1 {
						time.Sleep(12 * time.Second) // stale when it comes
					}
					w.Write([]byte("x"))
				}, "a")
				defer w.close()
				w.get("a", "/x")
				time.Sleep(20 * time.Second)
				var all sync.WaitGroup
				defer all.Wait()
				all.Go(func() { w.get("a", "/x") })
				time.Sleep(time.Millisecond)
				all.Go(func() {
					time.Sleep(time.Duration(12-age) * time.Second)
					w.get("a", "/x", "Cache-Control: no-cache")
				})
				r := w.get("a", "/x")
				if hit := strings.Contains(r.status(), "hit"); hit != (age < 10) || hit && r.Header.Get("Age") != fmt.Sprint(age) {
					t.Errorf("Age %q, %s", r.Header.Get("Age"), r.status())
				}
			})
		})
	}
}

// TestSuspended checks that the clock by which answers grow old goes on while the machine is suspended, and only then: the
// wall clock alone may be set.
func TestSuspended(t *testing.T) {
	var slept time.Duration
	s := sleep{before: int64(time.Minute)}
	for _, step := range []struct{ ahead, slept, want time.Duration }{
		{0, 0, 0},
		{time.Hour, 0, 0}, // set forward
		{time.Hour + time.Millisecond, 0, 0},
		{6 * time.Hour, 5 * time.Hour, 5 * time.Hour},
		{2 * time.Hour, 5 * time.Hour, 5 * time.Hour}, // set back
		{10 * time.Hour, 13 * time.Hour, 13 * time.Hour},
		{10 * time.Hour, 13 * time.Hour, 13 * time.Hour},
	} {
		slept = time.Minute + step.slept
		if got := s.by(int64(step.ahead), func() time.Duration { return slept }); got != step.want {
			t.Errorf("by(%v ahead) = %v, want %v", step.ahead, got, step.want)
		}
	}
	if d := suspended(); d < 0 || d > 365*24*time.Hour {
		t.Errorf("suspended() = %v", d)
	}
}
