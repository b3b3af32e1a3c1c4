package engine

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Each further source is compared from its first byte: a sibling with another version of the same
// length, without a distinguishing validator, does not affect the next source.
func TestSecondSourceDiffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 200_000
		body, other := content(1, size), content(2, size)
		o := &faulty{body: body}
		w := newCluster(t, func(rw http.ResponseWriter, r *http.Request, n int) { o.serve(rw, r, n+1) }, "a")
		defer w.close()
		w.rogue("c", &faulty{body: body, fault: "cut", at: 100_000})
		w.rogue("d", &faulty{body: other, fault: "cut", at: 150_000})
		if r := w.get("a", "/x"); r.err != nil || r.body != string(body) || !strings.Contains(r.status(), "c; hit") {
			t.Errorf("%d bytes, right %v, %v; %s", len(r.body), r.body == string(body), r.err, r.status())
		}
	})
}

// A sibling that crawls or stalls where it should continue a body is not waited for longer than the
// origin would need.
func TestSecondSourceCrawls(t *testing.T) {
	body, cases := content(1, 1_000_000), 0
	for _, fault := range []string{"stall", "crawl"} {
		for _, at := range []int{0, 1, 50_000, 300_000, 300_001} {
			for _, tag := range []string{"", `"a"`} {
				for _, names := range [][]string{{"c", "d"}, {"d", "c"}} { // whichever is asked first
					if !inShort(&cases, 3) {
						continue
					}
					synctest.Test(t, func(t *testing.T) {
						o := &faulty{body: body, tag: tag, ranges: true}
						w := newCluster(t, func(rw http.ResponseWriter, r *http.Request, n int) { o.serve(rw, r, n+1) }, "a")
						defer w.close()
						w.learnPace("a", "/other")
						w.rogue(names[0], &faulty{body: body, tag: tag, ranges: true, fault: "cut", at: 300_000})
						w.rogue(names[1], &faulty{body: body, tag: tag, ranges: true, fault: fault, at: at})
						start := time.Now()
						r := w.get("a", "/x")
						if took := time.Since(start); r.body != string(body) || took > 3*time.Second {
							t.Errorf("%s at %d, tag %q, %v: %d bytes, %v after %v; %s", fault, at, tag, names, len(r.body), r.err, took, r.status())
						}
						time.Sleep(time.Minute)
					})
				}
			}
		}
	}
}
