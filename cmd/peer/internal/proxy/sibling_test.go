package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/summarycache/summarycache/gossip/sibling"
)

// fakePeer starts a sibling with a handler of the test.
func (w *world) fakePeer(name string, h http.HandlerFunc) {
	w.serve(w.fakeAddr(name), h)
}

func (w *world) fakeAddr(name string) string {
	addr := "peer-" + name + ":3128"
	w.digests.mu.Lock()
	defer w.digests.mu.Unlock()
	w.digests.addr[name] = addr
	return addr
}

// claim adds a path to the digest of a peer, whether or not the peer has it.
func (w *world) claim(peer, path string) {
	advertise, _ := w.digests.hooks(peer)
	advertise("GET http://" + originHost + path)
}

// hitBy returns a handler that answers with a fresh response, as from the store of a sibling.
func hitBy(name, body string, fields ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Status", name+"; hit; ttl=30")
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Age", "30")
		for _, f := range fields {
			name, value, _ := strings.Cut(f, ": ")
			w.Header().Set(name, value)
		}
		io.WriteString(w, body)
	}
}

// TestNoLoops checks that a lookup request is never passed on, whatever the digests say, and
// neither is a request that has come back.
func TestNoLoops(t *testing.T) {
	for _, reverse := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, reverse, cached("origin"), "a", "b", "c")
			defer w.close()
			for _, p := range []string{"a", "b", "c"} {
				w.claim(p, "/x") // everybody lies
			}
			r := w.get("a", "/x")
			if r.body != "origin" || w.origin.count() != 1 {
				t.Errorf("%d %q, %d origin requests", r.StatusCode, r.body, w.origin.count())
			}
			if got := w.recorded(); got != "b:false-hit c:false-hit" {
				t.Errorf("recorded %q", got)
			}
			synctest.Wait()
			if n := w.peers["b"].Counters(); n.NotServedToSiblings != 1 || n.SiblingRequests != 0 || n.OriginRequests != 0 {
				t.Errorf("b: %+v", n)
			}
			if r := w.get("a", "/y", "Via: 1.1 b, 1.1 a"); r.StatusCode != http.StatusLoopDetected {
				t.Errorf("a request that came round: %d", r.StatusCode)
			}
		})
	}
}

// TestQuestion checks which of a client's fields a lookup request has.
func TestQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, false, cached("origin"), "a")
		defer w.close()
		var got *http.Request
		w.fakePeer("c", func(rw http.ResponseWriter, r *http.Request) {
			got = r
			hitBy("c", "sibling")(rw, r)
		})
		w.claim("c", "/x?q=1")
		r := w.get("a", "/x?q=1", "Cookie: secret", "Referer: http://elsewhere.test/", "Accept-Language: de",
			"Cache-Control: max-age=40, min-fresh=5", "If-None-Match: \"z\"", "X-Forwarded-For: 10.0.0.1")
		if r.body != "sibling" {
			t.Fatalf("%d %q", r.StatusCode, r.body)
		}
		if got.RequestURI != "http://"+originHost+"/x?q=1" || got.Host != originHost || got.Method != "GET" {
			t.Errorf("request %s %s Host: %s", got.Method, got.RequestURI, got.Host)
		}
		checkFields(t, "question", got.Header, "Cache-Control: only-if-cached, max-age=40, min-fresh=5 | Via: 1.1 a | Accept-Language: de | "+
			"Cookie: | Referer: | If-None-Match: | X-Forwarded-For:")
	})
}

var _ sibling.Locator = locator{}
