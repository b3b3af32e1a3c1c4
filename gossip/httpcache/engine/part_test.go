package engine

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// When a sibling or the origin stops, breaks off or crawls within a part of an object, the part is finished from another
// source if there is a strong validator, since it then is one of slices. Without one it goes to one client alone, and is cut.
func TestPartGoesOn(t *testing.T) {
	const size, first, last = 5_000_000, 2_000_000, 3_999_999
	body, cases := content(1, size), 0
	for _, tag := range []string{`"a"`, ""} {
		for _, fault := range []string{"stall", "cut", "crawl"} {
			for _, at := range []int{first, first + 1, first + 1_000_000, last} {
				for _, from := range []string{"sibling", "origin"} {
					if fault == "crawl" && from == "origin" {
						continue // the only source of a single client, which may just be slow
					}
					if !inShort(&cases, 3) {
						continue
					}
					limit := 4 * time.Second
					switch {
					case fault == "stall" && tag == "": // the time between bytes
						limit = 65 * time.Second
					case from == "origin":
						limit = 15 * time.Second
					}
					t.Run(fmt.Sprintf("%s of %s at %d, tag=%s", fault, from, at, tag), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							good := &faulty{body: body, tag: tag, ranges: from == "origin" || at != first+1_000_000}
							bad := &faulty{body: body, tag: tag, ranges: true, fault: fault, at: at, unsized: at == first+1} // chunked
							w := newCluster(t, func(rw http.ResponseWriter, r *http.Request, n int) {
								if from == "origin" && n == 1 {
									bad.serve(rw, r, 0)
								} else {
									good.serve(rw, r, 1)
								}
							}, "a")
							defer w.close()
							w.learnPace("a", "/other")
							if from == "sibling" {
								w.rogue("c", bad)
							}
							start := time.Now()
							r := w.get("a", "/x", fmt.Sprintf("Range: bytes=%d-%d", first, last))
							whole := r.StatusCode == http.StatusOK && tag == "" && at == first && r.body == string(body) // begun anew
							if cut := tag == "" && (at > first || r.err != nil && fault == "crawl"); cut {
								part := body[first:at]
								switch {
								case r.err == nil:
									part = body[first : last+1]
								case fault == "crawl": // some more came
									part, limit = body[first:][:min(len(r.body), at-first+20)], 10*time.Second
								}
								if took := time.Since(start); r.body != string(part) || took > limit {
									t.Errorf("%d, %d bytes, %v after %v; %s", r.StatusCode, len(r.body), r.err, took, r.status())
								}
								return
							}
							if took := time.Since(start); !whole && (r.StatusCode != http.StatusPartialContent || r.body != string(body[first:last+1])) || took > limit {
								t.Errorf("%d, %d bytes, %v after %v; %s", r.StatusCode, len(r.body), r.err, took, r.status())
							}
							time.Sleep(2 * time.Minute)
						})
					})
				}
			}
		}
	}
}

// Versions are never mixed: if another source has other bytes, or may have, the part is broken off,
// unless none of it was sent.
func TestPartsAreNotMixed(t *testing.T) {
	const size, first, last = 5_000_000, 2_000_000, 3_999_999
	old, other := content(1, size), content(2, size)
	for _, at := range []int{first, first + 1, first + 100_000} {
		for name, tags := range map[string][2]string{"changed": {`"a"`, `"b"`}, "weak": {`W/"a"`, `W/"a"`}, "none": {"", ""}} {
			for _, ranges := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s at %d, ranges=%v", name, at, ranges), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						// A part without a strong validator is not taken from a sibling.
						now := &faulty{body: other, tag: tags[1], ranges: ranges}
						w := newCluster(t, func(rw http.ResponseWriter, r *http.Request, n int) { now.serve(rw, r, 1) }, "a")
						defer w.close()
						w.rogue("c", &faulty{body: old, tag: tags[0], ranges: true, fault: "cut", at: at})
						r, err := w.try("a", "GET", "/x", "", fmt.Sprintf("Range: bytes=%d-%d", first, last))
						if err != nil {
							if at == first {
								t.Error(err)
							}
							return // broken off before the header was sent
						}
						sent := []byte(r.body)
						switch {
						case r.err == nil && r.StatusCode == 206 && string(sent) == string(other[first:last+1]) && (at == first || !strings.HasPrefix(tags[0], `"`)):
						case r.err == nil && r.StatusCode == 200 && string(sent) == string(other) && at == first:
						case r.err != nil && at > first && string(sent) == string(old[first:first+len(sent)]):
						default:
							t.Errorf("%d, %d bytes, %v; %s", r.StatusCode, len(sent), r.err, r.status())
						}
						time.Sleep(2 * time.Minute)
					})
				})
			}
		}
	}
}

// A response that is not stored because of a write during its fetch, or because its client says no-store, goes to one client
// alone: it is cut where its source breaks off or stalls, and not mixed with another.
func TestUnstoredIsCut(t *testing.T) {
	const size, at = 2_000_000, 1_000_000
	body := content(1, size)
	for i, fault := range []string{"cut", "stall", "cut", "stall"} {
		var write bool
		var fields []string
		if write = i < 2; !write {
			fields = []string{"Cache-Control: no-store"}
		}
		t.Run(fmt.Sprintf("%s, %v", fault, fields), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bad, good := &faulty{body: body, tag: `"a"`, fault: fault, at: at}, &faulty{body: body, tag: `"a"`}
				w := newCluster(t, func(rw http.ResponseWriter, r *http.Request, n int) {
					switch {
					case r.Method == http.MethodPost:
					case n == 0:
						time.Sleep(time.Second)
						bad.serve(rw, r, 0)
					default:
						good.serve(rw, r, 1)
					}
				}, "a")
				defer w.close()
				go func() {
					if time.Sleep(time.Second / 2); write {
						w.do("a", "POST", "/x", "written")
					}
				}()
				if r := w.get("a", "/x", fields...); r.err == nil || r.body != string(body[:at]) || strings.Contains(r.status(), "stored") {
					t.Errorf("%d bytes, %v; %s", len(r.body), r.err, r.status())
				}
				if r := w.get("a", "/x"); r.err != nil || r.body != string(body) {
					t.Errorf("then %d bytes, %v; %s", len(r.body), r.err, r.status())
				}
			})
		})
	}
}
