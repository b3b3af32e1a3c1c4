package proxy

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"time"
)

// Answers without a body that come at once on more connections than are kept are all passed on.
func TestFewIdleConnections(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8)) // so that goroutines are interrupted in between
	const together = 24
	var rounds sync.Map // of a path: how many of its requests have not arrived
	origin := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		all, _ := rounds.Load(r.URL.Path)
		all.(*sync.WaitGroup).Done()
		all.(*sync.WaitGroup).Wait()
	}))
	defer origin.Close()
	c := Config{MaxIdle: 4, Dial: (&net.Dialer{}).DialContext}
	c.SendTimeout = time.Minute
	transport := (&Handler{cfg: c}).newTransport(new(appliedSettings), time.Minute, time.Minute, nil)
	defer transport.CloseIdleConnections()
	for i := range 100 {
		path := fmt.Sprint("/", i)
		arrived := new(sync.WaitGroup)
		arrived.Add(together)
		rounds.Store(path, arrived)
		var all sync.WaitGroup
		for range together {
			all.Go(func() {
				r, _ := http.NewRequest(http.MethodGet, origin.URL+path, nil)
				answer, err := transport.RoundTrip(r)
				if err != nil {
					t.Error(err)
					return
				}
				answer.Body.Close()
			})
		}
		all.Wait()
	}
}
