package engine

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// A digest of one message's content is not given with another's: that of a slice neither with the whole that it begins
// nor with a part, here or at a sibling. A digest of the representation stays.
func TestDigestsOfParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSliceWorld(t, 10*sliceLength+5, "a", "b")
		defer w.close()
		w.rewrite = func(h http.Header) {
			h.Set("Content-Digest", "sha-256=:of this message:")
			h.Set("Content-Md5", "of this message")
			h.Set("Repr-Digest", "sha-256=:of the whole:")
		}
		for _, peer := range []string{"a", "a", "b", "b"} {
			for _, fields := range [][]string{{"Range: bytes=100-199"}, {"Range: bytes=5-"}, {"Range: bytes=-70"}, nil} {
				rec, res := w.get(peer, fields...)
				if h := rec.Header(); res.Err != nil || h["Content-Digest"] != nil || h["Content-Md5"] != nil || h["Repr-Digest"] == nil {
					t.Errorf("%v at %s: %d, %v, %v", fields, peer, rec.Code, h, res.Err)
				}
				synctest.Wait()
			}
		}
	})
}

// An answer without Vary, such as an error that one client provokes, does not replace the variants of others.
func TestAnswerWithoutVary(t *testing.T) {
	for _, status := range []int{200, 301, 404} {
		synctest.Test(t, func(t *testing.T) {
			w := newCluster(t, func(rw http.ResponseWriter, r *http.Request, n int) {
				rw.Header().Set("Cache-Control", "max-age=600")
				if r.Header.Get("Accept-Language") == "xx" {
					rw.WriteHeader(status)
					rw.Write([]byte("none"))
					return
				}
				rw.Header().Set("Vary", "Accept-Language")
				rw.Write([]byte(r.Header.Get("Accept-Language")))
			}, "a", "b")
			defer w.close()
			for _, peer := range []string{"a", "b"} {
				w.get(peer, "/x", "Accept-Language: de")
				time.Sleep(1100 * time.Millisecond) // Date has whole seconds
				w.get(peer, "/x", "Accept-Language: xx")
				time.Sleep(1100 * time.Millisecond)
				for _, again := range []string{"a", "b"} {
					if r := w.get(again, "/x", "Accept-Language: de"); r.StatusCode != 200 || r.body != "de" {
						t.Errorf("after %d without Vary: de gets %d %q at %s", status, r.StatusCode, r.body, again)
					}
				}
			}
		})
	}
}
