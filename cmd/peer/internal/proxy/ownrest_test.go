package proxy

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// An origin that answers a validation by the whole response, and never gets to its end:
// the rest is in the copy that was to be validated, if its strong validator is the same.
func TestStaleCopyFinishesABody(t *testing.T) {
	for _, size := range []int{1000, 200_000} {
		for _, at := range []int{0, 1, size / 2, size - 1} {
			for _, fault := range []string{"cut", "stall"} {
				for _, tag := range []string{`"a"`, `W/"a"`, ""} {
					for _, changed := range []bool{false, true} {
						name := fmt.Sprintf("%d bytes, %s at %d, tag %s, changed=%v", size, fault, at, tag, changed)
						t.Run(name, func(t *testing.T) {
							synctest.Test(t, func(t *testing.T) { staleCopyFinishes(t, size, at, fault, tag, changed) })
						})
					}
				}
			}
		}
	}
}

func staleCopyFinishes(t *testing.T, size, at int, fault, tag string, changed bool) {
	old, now := content(1, size), content(1, size)
	if changed { // though the tag is the same
		now = content(2, size)
	}
	w := newWorld(t, false, func(w http.ResponseWriter, r *http.Request, n int) {
		w.Header().Set("Cache-Control", "max-age=1, stale-if-error=0")
		if tag != "" {
			w.Header().Set("ETag", tag)
		}
		w.Header().Set("Content-Length", fmt.Sprint(size))
		if n == 0 {
			w.Write(old)
			return
		}
		w.Write(now[:at])
		w.(http.Flusher).Flush()
		if fault == "cut" {
			panic(http.ErrAbortHandler)
		}
		<-r.Context().Done()
	}, "a")
	defer w.close()
	if r := w.get("a", "/x"); !bytes.Equal([]byte(r.body), old) {
		t.Fatalf("%d bytes of the first answer", len(r.body))
	}
	time.Sleep(3 * time.Second)
	began := time.Now()
	r, err := w.try("a", "GET", "/x", "")
	took, whole := time.Since(began), err == nil && r.err == nil && r.StatusCode == http.StatusOK
	switch got := []byte(r.body); {
	case whole && !bytes.Equal(got, old):
		t.Errorf("%d bytes that the origin never had", len(got))
	case tag == `"a"` && !whole && (!changed || at == 0):
		t.Errorf("%d bytes: %v %v", len(got), err, r.err)
	case tag == `"a"` && whole && took > 15*time.Second:
		t.Errorf("it took %v", took)
	case tag != `"a"` && whole:
		t.Error("an answer that nothing says is the same")
	}
}
