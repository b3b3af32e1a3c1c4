package engine

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestStaleFromSiblings checks that, while the origin is down, a sibling's stale answer is served
// unless its statement is malformed, even beyond the limit for answers of siblings: the alternative
// is an error. Once the origin is up and that limit has passed, the object is fetched whole,
// although the answer repeats the origin's validator.
func TestStaleFromSiblings(t *testing.T) {
	for _, tt := range []struct {
		name, statement string
		served          bool
	}{
		{"no statement", "", true},
		{"a statement", "::;left=60", true},
		{"a sibling's word for too long", "::;left=0", true},
		{"a broken statement", "::;left=x", false},
		{"too many sums", ":o22fiH2CxyY=:, :o22fiH2CxyY=:", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				down := true
				w := newCluster(t, func(w http.ResponseWriter, r *http.Request, n int) {
					if down {
						w.WriteHeader(http.StatusBadGateway)
						return
					}
					validated("true")(w, r, n)
				})
				w.tune = func(c *peerConfig) {
					c.SiblingMaxAge = time.Hour
					c.Others = w.others("c")
				}
				w.start("a", t.TempDir())
				defer w.close()
				fields := []string{"Cache-Control: max-age=60, stale-if-error=2147483647", "Age: 61", `Etag: "v1"`, "Date: " + time.Now().Add(-61*time.Second).UTC().Format(http.TimeFormat)}
				if tt.statement != "" {
					fields = append(fields, "Summarycache-Body: "+tt.statement)
				}
				w.fakePeer("c", holds("", fields...))
				want := http.StatusBadGateway
				if tt.served {
					want = http.StatusOK
				}
				if got := w.get("a", "/x"); got.StatusCode != want || got.body != "" {
					t.Errorf("with the origin down: %d %q, want %d", got.StatusCode, got.body, want)
				}
				synctest.Wait()
				down = false
				w.get("a", "/x")
				time.Sleep(time.Hour + time.Minute)
				if got := w.get("a", "/x"); got.StatusCode != http.StatusOK || got.body != "true" {
					t.Errorf("an hour after the origin is up: %d %q, %s", got.StatusCode, got.body, got.status())
				}
			})
		})
	}
}

// TestStaleHandedOver checks that a sibling's stale answer which is handed over without being stored says that it is stale
// for an error.
func TestStaleHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, func(w http.ResponseWriter, r *http.Request, n int) { w.WriteHeader(http.StatusBadGateway) })
		w.tune = func(c *peerConfig) { c.Others = w.others("c") }
		w.start("a", t.TempDir())
		defer w.close()
		w.fakePeer("c", holds("", "Cache-Control: max-age=60, stale-if-error=3600", "Age: 61", `Etag: "v1"`, "Date: "+time.Now().Add(-61*time.Second).UTC().Format(http.TimeFormat)))
		got := w.get("a", "/x", "Cache-Control: no-store")
		if got.StatusCode != http.StatusOK || !strings.Contains(got.status(), "stale-if-error") {
			t.Errorf("%d, %s", got.StatusCode, got.status())
		}
	})
}
