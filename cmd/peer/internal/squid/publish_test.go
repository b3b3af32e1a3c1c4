package squid

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	format "github.com/summarycache/summarycache/digest/squid"
)

func objects(list ...Object) func() iter.Seq[Object] {
	return func() iter.Seq[Object] { return slices.Values(list) }
}

func publish(t *testing.T, p *Publisher) *format.Digest {
	t.Helper()
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest("GET", format.Path, nil))
	if w.Code != 200 || w.Header().Get("Content-Type") != "application/cache-digest" || w.Header().Get("Content-Length") != fmt.Sprint(w.Body.Len()) {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	d, err := format.Read(bytes.NewReader(w.Body.Bytes()), -1, format.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestOnlyWhatWouldBeServedIsPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		in := func(d time.Duration) time.Time { return now.Add(d) }
		const url = "http://example.com/"
		d := publish(t, &Publisher{Logger: textLogger(io.Discard), Objects: objects(
			Object{"GET " + url + "good", in(time.Hour), now},
			Object{"GET " + url + "old", in(time.Hour), in(-3*24*time.Hour + 10*time.Minute)},
			Object{"GET " + url + "too-old", in(time.Hour), in(-3*24*time.Hour + time.Minute)},
			Object{"GET " + url + "of-unknown-age", in(time.Hour), time.Time{}},
			Object{"GET " + url + "soon-stale", in(4 * time.Minute), now},
			Object{"GET " + url + "v\nAccept-Encoding:gzip", in(time.Hour), now},
			Object{"GET " + url + "v\nAccept-Encoding:", in(time.Hour), now},
			Object{"GET " + url + "w\nAccept:*/*\nAccept-Encoding:gzip", in(time.Hour), now},
			Object{"HEAD " + url + "head", in(time.Hour), now},
		)})
		for _, c := range []struct {
			path, mark string
			want       bool
		}{
			{"good", "", true}, {"old", "", true}, {"too-old", "", false}, {"of-unknown-age", "", false}, {"soon-stale", "", false},
			{"v", "", true}, {"v", `accept-encoding="gzip"`, true}, {"v", `accept-encoding`, true}, {"v", `accept-encoding="br"`, false},
			{"w", "", true}, {"head", "", false}, {"absent", "", false},
		} {
			if got := d.MayContain(format.KeyOf(format.Get, url+c.path, c.mark)); got != c.want {
				t.Errorf("%s %s is listed: %v, want %v", c.path, c.mark, got, c.want)
			}
		}
	})
}

// Digests of all sizes have few false positives, although the mask is mirrored, and are far from
// the sizes that a Squid refuses.
func TestPublishedSizes(t *testing.T) {
	for _, n := range []int{0, 1, 10, 100, 500, 5000, 30_000, 32_000, 50_000} {
		list := make([]Object, n)
		for i := range list {
			list[i] = Object{fmt.Sprintf("GET %s", cached(i)), time.Now().Add(time.Hour), time.Now()}
		}
		d := publish(t, &Publisher{Logger: textLogger(io.Discard), Objects: objects(list...)})
		const asked = 50_000
		falsely := 0
		for i := range max(n, asked) {
			if i < n && !d.MayContain(format.KeyOf(format.Get, cached(i), "")) {
				t.Fatalf("%d objects: %d is missing", n, i)
			}
			if i < asked && d.MayContain(format.KeyOf(format.Get, cached(1e6+i), "")) {
				falsely++
			}
		}
		rate := float64(falsely) / asked
		t.Logf("%d objects: %v, %.2f %% false", n, d, 100*rate)
		if rate > 0.005 || d.Fill() > 0.5 {
			t.Errorf("%d objects: %v, %.4f false", n, d, rate)
		}
	}
}

func TestDigestIsMadeOncePerWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := 0
		p := &Publisher{Logger: textLogger(io.Discard), Objects: func() iter.Seq[Object] { made++; return objects()() }}
		for range 21 {
			publish(t, p)
			pause(time.Second)
		}
		if made != 3*2 { // each looks twice, to count and to add
			t.Errorf("objects listed %d times", made)
		}
		if n, bytes := p.Served(); n != 21 || bytes != 21*(128+256) {
			t.Errorf("%d digests of %d bytes served", n, bytes)
		}
	})
}

// If the store grows while the digest is built, the digest becomes larger, not fuller.
func TestStoreThatGrows(t *testing.T) {
	looks := 0
	p := &Publisher{Logger: textLogger(io.Discard), Objects: func() iter.Seq[Object] {
		looks++
		n := 10
		if looks > 1 {
			n = 20_000
		}
		list := make([]Object, n)
		for i := range list {
			list[i] = Object{fmt.Sprintf("GET %s", cached(i)), time.Now().Add(time.Hour), time.Now()}
		}
		return slices.Values(list)
	}}
	if d := publish(t, p); d.Fill() > 0.6 || !d.MayContain(format.KeyOf(format.Get, cached(19_999), "")) {
		t.Errorf("%v", d)
	}
}

func TestPublisherIsReadOnly(t *testing.T) {
	p := &Publisher{Logger: textLogger(io.Discard), Objects: objects()}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest("POST", format.Path, strings.NewReader("x")))
	if w.Code != 405 {
		t.Errorf("POST: %d", w.Code)
	}
	w = httptest.NewRecorder()
	r := httptest.NewRequest("HEAD", format.Path, nil)
	r.Header.Set("If-Modified-Since", time.Now().Add(time.Hour).UTC().Format(time.RFC1123))
	p.ServeHTTP(w, r)
	if w.Code != 200 || w.Body.Len() != 0 || w.Header().Get("Content-Length") != "384" {
		t.Errorf("HEAD: %d, %v, %d bytes", w.Code, w.Header(), w.Body.Len())
	}
}

func BenchmarkPublish(b *testing.B) {
	const n = 100_000
	list := make([]Object, n)
	for i := range list {
		list[i] = Object{fmt.Sprintf("GET %s", cached(i)), time.Now().Add(time.Hour), time.Now()}
	}
	p := &Publisher{Logger: textLogger(io.Discard), Objects: objects(list...)}
	for b.Loop() {
		if _, err := p.build(time.Now()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/object")
}
