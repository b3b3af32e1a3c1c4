//go:build !race

package proxy

import (
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// TestTracingOffCostsNothing checks that a hit without tracing allocates nothing for it.
func TestTracingOffCostsNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("counts allocations, in one goroutine")
	}
	const before = 9
	if got := leastAllocs(hit(t)); got > before {
		t.Errorf("a hit takes %v allocations, want %v as before tracing", got, before)
	}
	if got := leastAllocs(tracedHit(t)); got <= before {
		t.Errorf("a traced hit takes %v allocations: is it traced?", got)
	}
}

// TestMissAllocations counts the allocations of a miss of 1 KiB, without those of the request, the
// recorder and the origin's response. Background work makes the number vary by about ten if the
// response is stored.
func TestMissAllocations(t *testing.T) {
	if testing.Short() {
		t.Skip("counts allocations, in one goroutine")
	}
	n := 0
	request := func() (*httptest.ResponseRecorder, string) {
		n++
		return httptest.NewRecorder(), "http://origin.test/" + strconv.Itoa(n)
	}
	for _, tt := range []struct {
		fields  string
		locator sibling.Locator
		most    float64
	}{{"max-age=600", nil, 40}, {"private", nil, 22}, {"private", nobody{}, 37}} {
		own := leastAllocs(func() {
			w, url := request()
			resp, _ := answering{tt.fields, 1024}.RoundTrip(httptest.NewRequest("GET", url, nil))
			w.WriteHeader(resp.StatusCode)
			w.Write(make([]byte, 1024))
		})
		h, err := New(Config{Config: engine.Config{Name: "a"}, Store: diskstore.Options{Dir: t.TempDir(), MaxBytes: 1 << 30}, OriginTransport: answering{tt.fields, 1024}, Locator: tt.locator})
		if err != nil {
			t.Fatal(err)
		}
		got := leastAllocs(func() {
			w, url := request()
			h.ServeHTTP(w, httptest.NewRequest("GET", url, nil))
		}) - own
		t.Logf("%s, siblings %v: %v allocations beyond the %v of the test", tt.fields, tt.locator, got, own)
		if got > tt.most {
			t.Errorf("%s, siblings %v: a miss takes %v allocations, want %v at most", tt.fields, tt.locator, got, tt.most)
		}
		h.Close()
	}
}

// nobody is a locator that finds no sibling, as for most misses.
type nobody struct{}

func (nobody) Candidates(dst []sibling.Candidate, _ string) []sibling.Candidate { return dst }
func (nobody) Distrust(string)                                                  {}

// leastAllocs measures several times, since other goroutines also allocate.
func leastAllocs(f func()) float64 {
	least := testing.AllocsPerRun(100, f)
	for range 30 {
		least = min(least, testing.AllocsPerRun(100, f))
	}
	return least
}
