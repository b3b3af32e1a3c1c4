//go:build !race

package proxy

import (
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/summarycache/summarycache/cmd/peer/internal/store"
)

// TestTracingOffCostsNothing: a hit allocates what it did before there were traces.
func TestTracingOffCostsNothing(t *testing.T) {
	const before = 9
	if got := leastAllocs(hit(t)); got > before {
		t.Errorf("a hit takes %v allocations, and took %v before it could be traced", got, before)
	}
	if got := leastAllocs(tracedHit(t)); got <= before {
		t.Errorf("a traced hit takes %v allocations: is it traced?", got)
	}
}

// TestMissAllocations: what a whole miss of 1 KiB allocates beyond the request, the
// recorder of the answer and the origin's response. What goes on in the
// background meanwhile makes the number of one that is stored differ by some ten.
func TestMissAllocations(t *testing.T) {
	n := 0
	request := func() (*httptest.ResponseRecorder, string) {
		n++
		return httptest.NewRecorder(), "http://origin.test/" + strconv.Itoa(n)
	}
	for fields, most := range map[string]float64{"max-age=600": 40, "private": 22} {
		own := leastAllocs(func() {
			w, url := request()
			resp, _ := answering{fields, 1024}.RoundTrip(httptest.NewRequest("GET", url, nil))
			w.WriteHeader(resp.StatusCode)
			w.Write(make([]byte, 1024))
		})
		h, err := New(Config{Name: "a", OriginTransport: answering{fields, 1024}, Store: store.Options{Dir: t.TempDir(), MaxBytes: 1 << 30}})
		if err != nil {
			t.Fatal(err)
		}
		got := leastAllocs(func() {
			w, url := request()
			h.ServeHTTP(w, httptest.NewRequest("GET", url, nil))
		}) - own
		t.Logf("%s: %v allocations beyond the %v of the test", fields, got, own)
		if got > most {
			t.Errorf("%s: a miss takes %v allocations, want %v at most", fields, got, most)
		}
		h.Close()
	}
}

// leastAllocs measures several times: other goroutines allocate too.
func leastAllocs(f func()) float64 {
	least := testing.AllocsPerRun(100, f)
	for range 30 {
		least = min(least, testing.AllocsPerRun(100, f))
	}
	return least
}
