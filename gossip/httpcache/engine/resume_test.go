package engine

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore/disktest"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// No request begins to follow a body that has broken off, even while its fetch is still ending, that stands still, or
// that the origin has replaced.
func TestFollowable(t *testing.T) {
	for _, c := range []struct {
		idle       time.Duration
		superseded bool
		err        error
		want       bool
	}{
		{0, false, nil, true},
		{time.Minute, false, nil, false},
		{0, true, nil, false},
		{0, false, io.EOF, true},
		{0, false, io.ErrUnexpectedEOF, false},
	} {
		b := body{from: new(answer), beside: beside{superseded: c.superseded}, err: c.err}
		if c.idle > 0 {
			b.may.since = time.Now().Add(-c.idle)
		}
		if got := b.followable(); got != c.want {
			t.Errorf("idle for %v, superseded %v, ended with %v: %v", c.idle, c.superseded, c.err, got)
		}
	}
}

// The rest of an answer comes from the store, whose disk fails too, and then from the origin, though there is no validator
// and of what was sent first only the beginning had checksums: those of the stored body tell that the origin's is the same.
func TestRestOfTwoSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := content(1, 700_000)
		w := newCluster(t, func(w http.ResponseWriter, r *http.Request, n int) {
			w.Header().Set("Cache-Control", "max-age=600")
			w.Write(body)
		})
		defer w.close()
		disk, broken := disktest.New(), false
		disk.Inject(func(op disktest.Op, _ string, b []byte) (int, error) {
			if broken && op == disktest.Read && len(b) > 10_000 && bytes.Contains(body[10*64<<10:], b[:32]) {
				return 0, syscall.EIO
			}
			return 0, nil
		})
		w.tune = func(c *peerConfig) { c.Store.FS = disk }
		c := w.start("a", "/store").Cache
		w.get("a", "/x")
		synctest.Wait()
		broken = true
		q, held, sums := begun(t, c)
		const sent, known = 3 * 64 << 10, 7
		got := httptest.NewRecorder()
		res := c.restOf(got, &q, held.entry, held.obj.Size(), rfc9111.Part{Length: int64(len(body))},
			Result{Bytes: sent, Err: io.ErrUnexpectedEOF}, bodies.Sums{Blocks: sums.Blocks[:known], Size: known * 64 << 10}).goOn()
		if res.Err != nil || !bytes.Equal(got.Body.Bytes(), body[sent:]) {
			t.Errorf("%d bytes of %d: %v", got.Body.Len(), len(body)-sent, res.Err)
		}
	})
}

// begun returns a request for /x, what is stored for it, and the checksums of that.
func begun(t *testing.T, c *Cache) (q request, held *found, sums bodies.Sums) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+originHost+"/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	q = c.request(r)
	held = c.peek(q.plain)
	view, err := c.store.Open(held.obj, held.about)
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	return q, held, view.Sums()
}
