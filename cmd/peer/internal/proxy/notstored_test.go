package proxy

import (
	"io"
	"net/http"
	"testing"
	"testing/synctest"
)

// An answer that is not stored states the reason, and the reason is counted.
func TestWhatIsNotStoredSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, true, func(w http.ResponseWriter, r *http.Request, _ int) {
			switch r.URL.Path {
			case "/cookie":
				w.Header().Set("Set-Cookie", "a=b")
				w.Header().Set("Cache-Control", "max-age=60")
			case "/private":
				w.Header().Set("Cache-Control", "private")
			case "/kept":
				w.Header().Set("Cache-Control", "max-age=60")
			}
			io.WriteString(w, "hello")
		}, "a", "b")
		defer w.close()
		for _, tt := range []struct{ path, status string }{
			{"/", "a; fwd=uri-miss; fwd-status=200; detail=no-lifetime"},
			{"/", "a; fwd=uri-miss; fwd-status=200; detail=no-lifetime"},
			{"/cookie", "a; fwd=uri-miss; fwd-status=200; detail=set-cookie"},
			{"/private", "a; fwd=uri-miss; fwd-status=200; detail=private"},
			{"/kept", "a; fwd=uri-miss; fwd-status=200; stored"},
		} {
			if got := w.get("a", tt.path).status(); got != tt.status {
				t.Errorf("GET %s: Cache-Status %q, want %q", tt.path, got, tt.status)
			}
		}
		n := w.peers["a"].Counters().NotStored
		for reason, want := range map[string]uint64{"no-lifetime": 2, "set-cookie": 1, "private": 1, "no-store": 0} {
			if got, ok := n[reason]; got != want || !ok {
				t.Errorf("not stored for %s: %d (%v), want %d", reason, got, ok, want)
			}
		}
	})
}
