package demo

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/origin"
	"github.com/summarycache/summarycache/cmd/peer/internal/trace"
)

// A driver plays the clients: it sends the trace's requests in their order, paced
// evenly, each to the peer that it was dealt to, and checks every answer.
type driver struct {
	trace   *trace.Trace
	dealt   []int
	rate    float64        // requests a second; 0 = as fast as answers come
	workers int            // requests under way at once, at most
	bases   []*url.URL     // where a peer's requests are for: itself or, through it, the origin
	clients []*http.Client // one for each peer

	done   atomic.Int64
	bytes  atomic.Int64
	failed atomic.Int64

	mu    sync.Mutex
	first error // what went wrong first
}

// newDriver sends the requests to peers, as to the sites that they stand before
// or, with an origin, as to proxies on the way there.
func newDriver(o Options, peers []*url.URL, origin *url.URL) *driver {
	d := &driver{trace: o.Trace, dealt: o.Trace.Deal(len(peers), o.Seed), rate: o.Rate, workers: o.Workers}
	for _, peer := range peers {
		t := &http.Transport{MaxIdleConnsPerHost: o.Workers, DisableCompression: true}
		base := peer
		if origin != nil {
			t.Proxy, base = http.ProxyURL(peer), origin
		}
		d.bases = append(d.bases, base)
		d.clients = append(d.clients, &http.Client{
			Transport:     t,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		})
	}
	return d
}

// run sends everything, or until ctx ends.
func (d *driver) run(ctx context.Context) error {
	defer func() {
		for _, c := range d.clients {
			c.CloseIdleConnections()
		}
	}()
	jobs := make(chan int)
	var all sync.WaitGroup
	for range d.workers {
		all.Go(func() {
			buf := make([]byte, 128<<10)
			for i := range jobs {
				err := d.request(ctx, i, buf)
				if err != nil && ctx.Err() != nil {
					continue // cut off
				} else if err != nil {
					d.fail(fmt.Errorf("request %d: %w", i+1, err))
				}
				d.done.Add(1)
			}
		})
	}
	var due func(i int) time.Time
	if began := time.Now(); d.rate > 0 {
		due = func(i int) time.Time { return began.Add(time.Duration(float64(i) / d.rate * float64(time.Second))) }
	}
	trace.Feed(ctx, len(d.trace.Requests), due, jobs)
	close(jobs)
	all.Wait()
	return ctx.Err()
}

func (d *driver) request(ctx context.Context, i int, buf []byte) error {
	target := d.trace.Requests[i].Target
	reference, err := url.ParseRequestURI(target)
	if err != nil {
		return err
	}
	base := d.bases[d.dealt[i]]
	u := *base
	u.Path, u.RawPath, u.RawQuery, u.ForceQuery = reference.Path, reference.RawPath, reference.RawQuery, reference.ForceQuery
	r := (&http.Request{Method: http.MethodGet, URL: &u, Host: base.Host, Header: http.Header{}}).WithContext(ctx)
	answer, err := d.clients[d.dealt[i]].Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s (%s)", target, answer.Status, answer.Header.Get("Cache-Status"))
	}
	if answer.Header.Get("Cache-Status") == "" {
		return fmt.Errorf("GET %s: no Cache-Status", target)
	}
	size := d.trace.Sizes[target]
	d.bytes.Add(size)
	return origin.Check(answer.Body, target, size, buf)
}

func (d *driver) fail(err error) {
	d.failed.Add(1)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.first == nil {
		d.first = err
	}
}

// errors returns how many requests went wrong, and the first of them.
func (d *driver) errors() (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failed.Load(), d.first
}
