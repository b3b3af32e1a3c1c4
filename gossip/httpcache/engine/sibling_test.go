package engine

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestSiblingMisbehaves(t *testing.T) {
	tests := []struct {
		name     string
		peer     http.HandlerFunc // nil = nobody listens
		recorded string
		false_   uint64
		errors   uint64
	}{
		{"false hit", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Status", "c; detail=only-if-cached")
			w.WriteHeader(504)
		}, "c:false-hit", 1, 0},
		{"nobody there", nil, "c:failed", 0, 1},
		{"too slow", func(w http.ResponseWriter, r *http.Request) { time.Sleep(time.Minute) }, "c:failed", 0, 1},
		{"breaks off", func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }, "c:failed", 0, 1},
		{"an error of its own", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) }, "c:failed", 0, 1},
		{"an answer that is no hit", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Status", "c; fwd=uri-miss")
			w.Header().Set("Cache-Control", "max-age=60")
			io.WriteString(w, "fetched")
		}, "c:failed", 0, 1},
		{"stale on arrival", holds("stale", "Age: 60"), "c:hit", 1, 0},
		{"private", holds("private", "Cache-Control: max-age=60, private"), "c:hit", 1, 0},
		{"no-store", holds("no-store", "Cache-Control: max-age=60, no-store"), "c:hit", 1, 0},
		{"no-cache", holds("no-cache", "Cache-Control: no-cache"), "c:hit", 1, 0},
		{"another variant", holds("variant", "Vary: Cookie"), "c:hit", 1, 0},
		{"breaks off within a short body", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			holds(strings.Repeat("x", 500))(w, r)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, "c:hit c:failed", 0, 1},
		{"stalls within a short body", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			holds(strings.Repeat("x", 500))(w, r)
			w.(http.Flusher).Flush()
			time.Sleep(time.Hour)
		}, "c:hit c:failed", 0, 1},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			w := newCluster(t, cached("from the origin"), "a")
			defer w.close()
			if tt.peer != nil {
				w.fakePeer("c", tt.peer)
			}
			w.claim("c", "/x")
			start := time.Now()
			r := w.get("a", "/x", "Cookie: session=1")
			if r.StatusCode != 200 || r.body != "from the origin" || r.err != nil {
				t.Errorf("%s: %d %q %v", tt.name, r.StatusCode, r.body, r.err)
			}
			if took := time.Since(start); took > 6*time.Second {
				t.Errorf("%s: the client waited %v", tt.name, took)
			}
			if got := w.recorded(); got != tt.recorded {
				t.Errorf("%s: recorded %q, want %q", tt.name, got, tt.recorded)
			}
			synctest.Wait()
			n := w.peers["a"].siblings.Stats()
			if n.FalseHits != tt.false_ || n.Errors != tt.errors || n.Asked != 1 {
				t.Errorf("%s: %+v", tt.name, n)
			}
			e := w.peers["a"].results[0]
			if e.Asked != 1 || e.FalseHits != int(tt.false_) || e.SiblingErrors != int(tt.errors) || e.Outcome != OriginFetch {
				t.Errorf("%s: result %+v", tt.name, e)
			}
			time.Sleep(2 * time.Hour)
		})
	}
}

// TestNextCandidate checks that after a false hit the next candidate gets the lookup, up to the
// limit.
func TestNextCandidate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, cached("origin"), "a", "c")
		defer w.close()
		w.get("c", "/x")
		synctest.Wait()
		w.fakePeer("b", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(504) })
		w.claim("b", "/x")
		if r := w.get("a", "/x"); !strings.HasPrefix(r.status(), "c; hit") {
			t.Errorf("Cache-Status %q", r.status())
		}
		if got := w.recorded(); got != "b:false-hit c:hit" {
			t.Errorf("recorded %q", got)
		}
	})
}

// TestBreaksOffLate checks that, once bytes of a sibling's body have been sent, the client sees a
// broken body and not a short one, and nothing of it is stored.
func TestBreaksOffLate(t *testing.T) {
	for _, announced := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newCluster(t, cached("from the origin"), "a")
			defer w.close()
			w.fakePeer("c", func(w http.ResponseWriter, r *http.Request) {
				if announced {
					w.Header().Set("Content-Length", "1000000")
				}
				holds(strings.Repeat("x", 300_000))(w, r)
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			})
			w.claim("c", "/x")
			r, err := w.try("a", "GET", "/x", "")
			if err == nil && r.err == nil {
				t.Errorf("announced=%v: %d bytes came as if they were all", announced, len(r.body))
			}
			synctest.Wait()
			if n := w.peers["a"].brokenBodies(); n != 1 {
				t.Errorf("%d answers were cut short", n)
			}
			w.digests.mu.Lock()
			w.digests.dead["c"] = true
			w.digests.mu.Unlock()
			if r := w.get("a", "/x"); r.body != "from the origin" {
				t.Errorf("then %d %d bytes", r.StatusCode, len(r.body))
			}
		})
	}
}

// TestRefusedAtOnce checks that a peer that refuses connections is suspended before the client has
// its answer, so that the next miss does not use it.
func TestRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, cached("origin"), "a")
		defer w.close()
		for i := range 3 {
			w.claim("c", fmt.Sprint("/", i))
		}
		for i := range 3 {
			if r := w.get("a", fmt.Sprint("/", i)); r.body != "origin" {
				t.Errorf("%d %q", r.StatusCode, r.body)
			}
		}
		synctest.Wait()
		if n := w.peers["a"].siblings.Stats(); n.Asked != 1 || n.Errors != 1 {
			t.Errorf("%+v", n)
		}
	})
}

// TestClientWantsFresh checks that a client's demands beyond freshness do not count against a
// sibling that cannot meet them.
func TestClientWantsFresh(t *testing.T) {
	for _, cc := range []string{"max-age=1", "min-fresh=59"} {
		synctest.Test(t, func(t *testing.T) {
			w := newCluster(t, cached("origin"), "a", "b")
			defer w.close()
			w.get("b", "/x")
			time.Sleep(5 * time.Second)
			w.claim("b", "/x")
			r := w.get("a", "/x", "Cache-Control: "+cc)
			synctest.Wait()
			if got := w.recorded(); r.body != "origin" || w.origin.count() != 2 || got != "b:hit" {
				t.Errorf("%s: %q, %d origin requests, recorded %q", cc, r.body, w.origin.count(), got)
			}
		})
	}
}

// TestNotForSiblings checks requests that no sibling may answer.
func TestNotForSiblings(t *testing.T) {
	for _, tt := range []struct{ method, field string }{
		{"GET", "Authorization: Basic eDp5"},
		{"GET", "Cache-Control: no-cache"},
		{"GET", "Cache-Control: max-age=0"},
		{"GET", "Pragma: no-cache"},
		{"POST", "X-A: b"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newCluster(t, cached("origin"), "a")
			defer w.close()
			w.fakePeer("c", holds("sibling"))
			w.claim("c", "/x")
			w.do("a", tt.method, "/x", "", tt.field)
			synctest.Wait()
			if a := w.peers["a"]; a.siblings.Stats().Asked != 0 || a.OriginRequests.Load() != 1 {
				t.Errorf("%s, %s: %+v", tt.method, tt.field, a.siblings.Stats())
			}
		})
	}
}

// TestLookupRequest checks which of a client's fields a lookup request has.
func TestLookupRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, cached("origin"), "a")
		defer w.close()
		var got *http.Request
		w.fakePeer("c", func(rw http.ResponseWriter, r *http.Request) {
			got = r
			holds("sibling")(rw, r)
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
		for name, want := range map[string]string{"Cache-Control": "only-if-cached, max-age=40, min-fresh=5", "Via": "1.1 a", "Accept-Language": "de",
			"Cookie": "", "Referer": "", "If-None-Match": "", "X-Forwarded-For": ""} {
			if lines := got.Header[name]; got.Header.Get(name) != want || want == "" && lines != nil {
				t.Errorf("%s of the lookup request: %q, want %q", name, lines, want)
			}
		}
	})
}

// Lookup requests have no cookies, whatever the responses of a host vary by, and are not sent for
// responses that cookies select.
func TestCookiesAreNotForSiblings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, func(w http.ResponseWriter, r *http.Request, n int) {
			w.Header().Set("Cache-Control", "max-age=60")
			w.Header().Set("Vary", "Cookie")
			io.WriteString(w, r.Header.Get("Cookie"))
		}, "a")
		defer w.close()
		var asked []*http.Request
		w.fakePeer("c", func(rw http.ResponseWriter, r *http.Request) {
			asked = append(asked, r)
			rw.WriteHeader(http.StatusGatewayTimeout)
		})
		for i, path := range []string{"/x", "/y", "/x"} {
			w.claim("c", path)
			for _, cookie := range []string{"Cookie: session=1", "Cookie: session=2"} {
				if r := w.get("a", path, cookie); r.body != strings.TrimPrefix(cookie, "Cookie: ") {
					t.Errorf("%d: %s got %q", i, cookie, r.body)
				}
				synctest.Wait()
			}
		}
		if len(asked) == 0 {
			t.Error("the sibling got no request")
		}
		for _, r := range asked {
			if r.Header["Cookie"] != nil {
				t.Errorf("a sibling got a request with %v", r.Header)
			}
		}
	})
}

// TestNeverTravels checks that a response that must not be shared is not advertised, and not sent
// to a sibling that requests it nevertheless.
func TestNeverTravels(t *testing.T) {
	for _, fields := range []string{"Cache-Control: private, max-age=60", "Cache-Control: no-store, max-age=60",
		"Cache-Control: no-cache | ETag: \"a\"", "Cache-Control: max-age=0 | ETag: \"a\"", "Vary: *| Cache-Control: max-age=60", "X-A: b"} {
		synctest.Test(t, func(t *testing.T) {
			w := newCluster(t, answers(0, strings.Split(fields, "| ")...), "a", "b")
			defer w.close()
			w.get("b", "/x")
			synctest.Wait()
			if w.digests.lists("b", "GET http://"+originHost+"/x") || w.peers["b"].store.Stats().Listed != 0 {
				t.Errorf("%s: listed", fields)
			}
			w.claim("b", "/x")
			if r := w.get("a", "/x"); r.body != "n=1" {
				t.Errorf("%s: a got %q", fields, r.body)
			}
			if got := w.recorded(); got != "b:false-hit" {
				t.Errorf("%s: recorded %q", fields, got)
			}
		})
	}
}

// TestVariants checks that a peer that knows by which fields a host's responses vary finds the
// right variant at a sibling, and requests no other.
func TestVariants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, answers(0, "Cache-Control: max-age=60", "Vary: X-V, Accept-Encoding"), "a", "b")
		defer w.close()
		w.get("b", "/x", "X-V: 1", "Accept-Encoding: gzip")
		w.get("a", "/learn")
		synctest.Wait()
		if r := w.get("a", "/x", "X-V: 2", "Accept-Encoding: gzip"); !strings.HasPrefix(r.status(), "a; fwd=uri-miss") {
			t.Errorf("another variant: %q", r.status())
		}
		if r := w.get("a", "/x", "X-V: 1", "Accept-Encoding: GZIP"); !strings.HasPrefix(r.status(), "b; hit") {
			t.Errorf("the sibling's variant: %q", r.status())
		}
		if got := w.recorded(); got != "b:hit" {
			t.Errorf("recorded %q", got)
		}
		if r := w.get("a", "/x", "X-V: 1", "Accept-Encoding: gzip"); !strings.HasPrefix(r.status(), "a; hit") {
			t.Errorf("then %q", r.status())
		}
	})
}

// TestSiblingValidates checks that a sibling with the same fresh copy confirms a stale one without
// sending the body again.
func TestSiblingValidates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, answers(0, "Cache-Control: max-age=10", `ETag: "a"`), "a", "b")
		defer w.close()
		w.get("a", "/x")
		time.Sleep(20 * time.Second)
		w.digests.mu.Lock()
		w.digests.dead["a"] = true
		w.digests.mu.Unlock()
		w.get("b", "/x")
		synctest.Wait()
		time.Sleep(3 * time.Second)
		r := w.get("a", "/x")
		if want := "b; hit; ttl=7, a; fwd=stale; fwd-status=304; stored; detail=sibling"; r.status() != want || r.body != "n=0" {
			t.Errorf("%q %q, want %q", r.body, r.status(), want)
		}
		synctest.Wait()
		if w.origin.count() != 2 || w.peers["a"].results[1].Outcome != Revalidated {
			t.Errorf("%d origin requests, %+v", w.origin.count(), w.peers["a"].results[1])
		}
		if r := w.get("a", "/x"); r.status() != "a; hit; ttl=7" || r.Header.Get("Age") != "3" {
			t.Errorf("then %q, Age %s", r.status(), r.Header.Get("Age"))
		}
	})
}

// TestListing checks that an object is advertised while it is fresh, withdrawn when it becomes
// stale, and advertised again after validation.
func TestListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, func(w http.ResponseWriter, r *http.Request, n int) {
			w.Header().Set("Cache-Control", "max-age=10")
			w.Header().Set("Etag", `"a"`)
			if n > 0 {
				w.WriteHeader(http.StatusNotModified)
			}
		}, "a")
		defer w.close()
		id := "GET http://" + originHost + "/x"
		check := func(when string, want bool) {
			t.Helper()
			synctest.Wait()
			if got := w.digests.lists("a", id); got != want {
				t.Errorf("%s: listed: %v, want %v", when, got, want)
			}
		}
		w.get("a", "/x")
		check("fetched", true)
		time.Sleep(10 * time.Second)
		check("stale", false)
		w.get("a", "/x")
		check("validated", true)
		if n := w.peers["a"].Purge(TargetOf("http://" + originHost + "/x")); n != 1 {
			t.Errorf("Purge = %d", n)
		}
		check("purged", false)
		if w.recorded() != "" {
			t.Error("a sibling got a request")
		}
	})
}

// holds answers every request with a fresh object.
func holds(body string, fields ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Cache-Status", "p; hit")
		for _, f := range fields {
			name, value, _ := strings.Cut(f, ": ")
			w.Header().Set(name, value)
		}
		io.WriteString(w, body)
	}
}
