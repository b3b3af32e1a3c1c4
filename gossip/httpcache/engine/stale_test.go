package engine

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Requests for a response that could not be shared do not wait for each other, until this is forgotten or the response
// can be shared.
func TestHitForMiss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, answers(time.Second, "Cache-Control: private"), "a")
		defer w.close()
		ask := func(most time.Duration, requests int) {
			t.Helper()
			before, start := w.origin.count(), time.Now()
			var all sync.WaitGroup
			for range 10 {
				all.Go(func() { w.get("a", "/x") })
			}
			all.Wait()
			if took, n := time.Since(start), w.origin.count()-before; took != most || n != requests {
				t.Errorf("10 requests took %v and %d requests to the origin, want %v and %d", took, n, most, requests)
			}
		}
		ask(2*time.Second, 10) // nine wait for the first
		ask(time.Second, 10)
		time.Sleep(hitForMissTime)
		ask(2*time.Second, 10)
		time.Sleep(hitForMissTime)
		w.origin.serve = answers(time.Second, "Cache-Control: max-age=60")
		ask(time.Second, 1)
	})
}

// A stale copy is served at once while it is validated, and in place of an error, for as long as the origin allows.
func TestStaleAnswers(t *testing.T) {
	fails := func(w http.ResponseWriter, r *http.Request, n int) { w.WriteHeader(http.StatusInternalServerError) }
	breaks := func(http.ResponseWriter, *http.Request, int) { panic(http.ErrAbortHandler) }
	says := func(status int, control, body string) func(http.ResponseWriter, *http.Request, int) {
		return func(w http.ResponseWriter, r *http.Request, n int) {
			w.Header().Set("Cache-Control", control)
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	for _, tt := range []struct {
		name, allows string
		origin       func(http.ResponseWriter, *http.Request, int) // after the first answer
		after        time.Duration
		body         string // "" = an error
		detail       string
		then         string
	}{
		{"revalidated meanwhile", ", stale-while-revalidate=60", nil, 30 * time.Second, "n=0", "hit", "n=1"},
		{"gone meanwhile", ", stale-while-revalidate=60", says(404, "no-store", "gone"), 30 * time.Second, "n=0", "hit", "gone"},
		{"private meanwhile", ", stale-while-revalidate=60", says(200, "private", "mine"), 30 * time.Second, "n=0", "hit", "mine"},
		{"moved meanwhile", ", stale-while-revalidate=60", says(302, "no-store", ""), 30 * time.Second, "n=0", "hit", ""},
		{"an error meanwhile", ", stale-while-revalidate=60", fails, 30 * time.Second, "n=0", "hit", "n=0"},
		{"too many requests meanwhile", ", stale-while-revalidate=60", says(429, "no-store", "slowly"), 30 * time.Second, "n=0", "hit", "n=0"},
		{"too late for that", ", stale-while-revalidate=60", nil, 2 * time.Minute, "n=1", "stale", "n=1"},
		{"an error", ", stale-if-error=60", fails, 30 * time.Second, "n=0", "detail=stale-if-error", "n=0"},
		{"no answer", ", stale-if-error=60", breaks, 30 * time.Second, "n=0", "detail=stale-if-error", "n=0"},
		{"an error, too late", ", stale-if-error=60", fails, 2 * time.Minute, "", "fwd=stale", ""},
		{"an error that nothing allows for", ", must-revalidate", fails, 30 * time.Second, "", "fwd=stale", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newCluster(t, answers(0, "Cache-Control: max-age=2"+tt.allows), "a")
				defer w.close()
				w.get("a", "/x")
				time.Sleep(tt.after)
				if tt.origin != nil {
					w.origin.serve = tt.origin
				}
				check := func(r reply, want string) {
					t.Helper()
					refused := r.StatusCode >= http.StatusInternalServerError || r.StatusCode == http.StatusFound
					if refused != (want == "") || !refused && r.body != want {
						t.Errorf("%d %q, want %q; %s", r.StatusCode, r.body, want, r.status())
					}
				}
				r := w.get("a", "/x")
				if check(r, tt.body); !strings.Contains(r.status(), tt.detail) {
					t.Errorf("%q, want %q in it", r.status(), tt.detail)
				}
				synctest.Wait()
				check(w.get("a", "/x"), tt.then)
			})
		})
	}
}
