package replay

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/origin"
	"github.com/summarycache/summarycache/sim/workload"
)

// Options are the options of [Run].
type Options struct {
	Trace *workload.Trace
	Peers []string // HOST:PORT of each for requests
	// Base is the origin of the trace's targets, for peers that are forward proxies;
	// nil = the peers are reverse proxies.
	Base    *url.URL
	Rate    float64 // requests a second in all; 0 = as fast as answers come
	Workers int     // most requests under way at a time; 0 = 16 for each peer
	Seed    uint64  // for assigning requests of unknown clients to peers
	// Progress, if not nil, is called after each request, one call at a time, with the
	// counts of all peers so far.
	Progress func(Counts)
}

// Run sends the trace until its end or that of ctx. An answer fails without a Cache-Status, or if its body is
// not that of the demo's origin for its URL. Failed requests are counted in the result.
// Requests that the end of ctx interrupts are not counted, and Run then returns the error of ctx.
func Run(ctx context.Context, o Options) (*Result, error) {
	if o.Workers == 0 {
		o.Workers = 16 * len(o.Peers)
	}
	p := &player{o: o, peer: o.Trace.Assign(len(o.Peers), o.Seed), ways: make([]Way, len(o.Trace.Requests)), peers: make([]Counts, len(o.Peers)), began: time.Now()}
	for _, addr := range o.Peers {
		t := &http.Transport{MaxIdleConnsPerHost: o.Workers, DisableCompression: true}
		if o.Base != nil {
			t.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: addr})
		}
		defer t.CloseIdleConnections()
		p.clients = append(p.clients, t)
	}
	jobs := make(chan int)
	var all sync.WaitGroup
	for range o.Workers {
		all.Go(func() {
			buf := make([]byte, 128<<10)
			for i := range jobs {
				p.request(ctx, i, buf)
			}
		})
	}
	p.feed(ctx, jobs)
	close(jobs)
	all.Wait()
	r := &Result{Seconds: time.Since(p.began).Seconds(), Peers: p.peers, Total: p.total, Ways: p.ways}
	if p.first != nil {
		r.FirstError = p.first.Error()
	}
	return r, ctx.Err()
}

// A player is the state of one Run.
type player struct {
	o       Options
	peer    []int // of each request
	clients []*http.Transport
	began   time.Time

	mu    sync.Mutex
	ways  []Way // of each request that was answered
	peers []Counts
	total Counts
	first error
}

// feed sends the number of each request to jobs when it is due, until all are sent or ctx ends. If it
// is late it catches up, so that the mean rate is kept.
func (p *player) feed(ctx context.Context, jobs chan<- int) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := range p.o.Trace.Requests {
		timer.Reset(time.Until(p.began.Add(p.due(i))))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		select {
		case jobs <- i:
		case <-ctx.Done():
			return
		}
	}
}

// due returns when the i-th request is due, counted from the beginning.
func (p *player) due(i int) time.Duration {
	if p.o.Rate <= 0 {
		return 0
	}
	return time.Duration(min(float64(i)/p.o.Rate, 1e9) * float64(time.Second))
}

func (p *player) request(ctx context.Context, i int, buf []byte) {
	way, n, err := p.send(ctx, i, buf)
	if err != nil && ctx.Err() != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c := Counts{Requests: 1, Bytes: n}
	if err == nil {
		*c.of(way) = 1
		p.ways[i] = way
	} else {
		c.Failed = 1
		if p.first == nil {
			p.first = fmt.Errorf("request %d: %w", i+1, err)
		}
	}
	p.peers[p.peer[i]].Add(c)
	p.total.Add(c)
	if p.o.Progress != nil {
		p.o.Progress(p.total)
	}
}

// send sends one request and reads its answer to the end.
func (p *player) send(ctx context.Context, i int, buf []byte) (way Way, n int64, err error) {
	target := p.o.Trace.Requests[i].Key
	u, err := p.url(i, target)
	if err != nil {
		return 0, 0, err
	}
	r := (&http.Request{Method: http.MethodGet, URL: u, Host: u.Host, Header: http.Header{}}).WithContext(ctx)
	resp, err := p.clients[p.peer[i]].RoundTrip(r)
	if err != nil {
		return 0, 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 500 {
		return 0, 0, fmt.Errorf("GET %s: %s (Cache-Status %q)", target, resp.Status, resp.Header.Get("Cache-Status"))
	}
	way = wayOf(resp.Header)
	if resp.StatusCode != http.StatusOK || way == Unknown {
		return way, 0, fmt.Errorf("GET %s: %s (Cache-Status %q)", target, resp.Status, resp.Header.Get("Cache-Status"))
	}
	size := p.o.Trace.Sizes[target]
	return way, size, origin.Check(resp.Body, target, size, buf)
}

func (p *player) url(i int, target string) (*url.URL, error) {
	ref, err := url.ParseRequestURI(target)
	if err != nil {
		return nil, err
	}
	ref.Scheme, ref.Host = "http", p.o.Peers[p.peer[i]]
	if p.o.Base != nil {
		ref.Scheme, ref.Host = p.o.Base.Scheme, p.o.Base.Host
	}
	return ref, nil
}
