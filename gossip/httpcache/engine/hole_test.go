package engine

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestOnlyIfCachedWithAHole: a request that must be answered from the store gets all that it wants or nothing, so an
// answer does not begin if one of its slices is missing, stale or of another version.
func TestOnlyIfCachedWithAHole(t *testing.T) {
	const size, hole = 9*sliceLength + 5, 5 // the slice, from 1
	for name, fill := range map[string]func(w *sliceWorld, get func(slice int)){
		"missing": func(_ *sliceWorld, get func(int)) { time.Sleep(30 * time.Second) },
		"stale":   func(_ *sliceWorld, get func(int)) { get(hole); time.Sleep(30 * time.Second) },
		"of another version": func(w *sliceWorld, get func(int)) {
			w.tag = `"0"`
			time.Sleep(30 * time.Second)
			get(hole)
			w.tag = `"1"`
		},
		"there": func(_ *sliceWorld, get func(int)) { time.Sleep(30 * time.Second); get(hole) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newSliceWorld(t, size, "a")
				defer w.close()
				get := func(slice int) {
					t.Helper()
					first := (slice - 1) * sliceLength
					rec, res := w.get("a", fmt.Sprintf("Range: bytes=%d-%d", first, first))
					w.wantPart(rec, res, first, first+1)
				}
				fill(w, get)
				for slice := 1; slice <= 10; slice++ {
					if slice != hole {
						get(slice)
					}
				}
				time.Sleep(40 * time.Second) // what was fetched at first is stale now
				w.asked()
				for _, tc := range []struct {
					what       string
					first, end int
					over       bool // the hole
				}{
					{"the whole", 0, size, true},
					{"what ends before the hole", 0, (hole - 1) * sliceLength, false},
					{"what ends with its first byte", 0, (hole-1)*sliceLength + 1, true},
					{"what begins with its last byte", hole*sliceLength - 1, size, true},
					{"what begins after it", hole * sliceLength, size, false},
					{"two bytes at the border before", (hole-1)*sliceLength - 1, (hole-1)*sliceLength + 1, true},
					{"two bytes at another border", sliceLength - 1, sliceLength + 1, false},
					{"the slice before", (hole - 2) * sliceLength, (hole - 1) * sliceLength, false},
					{"the hole", (hole - 1) * sliceLength, hole * sliceLength, true},
				} {
					fields := []string{"Cache-Control: only-if-cached"}
					if tc.end-tc.first < size {
						fields = append(fields, fmt.Sprintf("Range: bytes=%d-%d", tc.first, tc.end-1))
					}
					if alone := tc.first >= (hole-1)*sliceLength && tc.end <= hole*sliceLength; alone && name == "of another version" {
						continue // which is stored
					}
					rec, res := w.get("a", fields...)
					if tc.over && name != "there" {
						if rec.Code != 504 || res.Err != nil {
							t.Errorf("%s: %d, %d bytes, %v; want 504", tc.what, rec.Code, rec.Body.Len(), res.Err)
						}
						continue
					}
					w.wantPart(rec, res, tc.first, tc.end)
				}
				w.wantAsked("only-if-cached")
			})
		})
	}
}
