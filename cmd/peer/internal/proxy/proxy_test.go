package proxy

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestHitAndMiss(t *testing.T) {
	for _, reverse := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, reverse, cached("hello"), "a")
			defer w.close()
			for i, want := range []string{"a; fwd=uri-miss; fwd-status=200; stored", "a; hit; ttl=60", "a; hit; ttl=30"} {
				r := w.get("a", "/x")
				if r.StatusCode != 200 || r.body != "hello" || r.status() != want {
					t.Errorf("request %d: %d %q %q, want %q", i, r.StatusCode, r.body, r.status(), want)
				}
				if i == 1 {
					time.Sleep(30 * time.Second)
				}
			}
			if w.origin.count() != 1 {
				t.Errorf("%d origin requests", w.origin.count())
			}
		})
	}
}

func TestSiblingHit(t *testing.T) {
	for _, reverse := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, reverse, cached("hello"), "a", "b")
			defer w.close()
			w.get("b", "/x")
			time.Sleep(10 * time.Second)
			synctest.Wait()
			r := w.get("a", "/x")
			if want := "b; hit; ttl=50, a; fwd=uri-miss; fwd-status=200; stored; detail=sibling"; r.body != "hello" || r.status() != want {
				t.Errorf("%q %q, want %q", r.body, r.status(), want)
			}
			if got := r.Header.Get("Age"); got != "10" {
				t.Errorf("Age: %s, want 10", got)
			}
			synctest.Wait()
			if r := w.get("a", "/x"); r.status() != "a; hit; ttl=50" {
				t.Errorf("then %q", r.status())
			}
			n, m := w.peers["a"].Counters(), w.peers["b"].Counters()
			if n.SiblingHits != 1 || n.SiblingRequests != 1 || n.FalseHits != 0 || n.LocalHits != 1 || m.ServedToSiblings != 1 {
				t.Errorf("a: %+v\nb: %+v", n, m)
			}
			if w.digests.outcomes() != "b:hit" || w.origin.count() != 1 {
				t.Errorf("reports %q, %d origin requests", w.digests.outcomes(), w.origin.count())
			}
		})
	}
}
