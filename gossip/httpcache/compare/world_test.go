package compare

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"sort"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/memnet"
)

const (
	nodes      = 8
	objects    = 50_000
	zipf       = 0.9
	valueBytes = 1024
	oneWay     = 500 * time.Microsecond
	originTime = 20 * time.Millisecond
	spacing    = time.Second / 4000 // between requests
	patience   = 10 * time.Second   // of a client
)

// A system is a cache on some nodes.
type system interface {
	// get requests a key from node i.
	get(ctx context.Context, i int, key string) error
	// join adds a node, which the others know at once.
	join()
	// gone tells the system that node i died, as an operator would, if it does not
	// detect that itself.
	gone(i int)
	close()
}

// A world is one run: a network in virtual time, an origin and a system.
type world struct {
	net     *memnet.Network
	streams atomic.Int64 // bytes on connections between nodes
	system  system
	rng     *rand.Rand
	ranks   []float64 // cumulative

	mu      sync.Mutex
	fetches int            // of the origin
	again   int            // of those, of objects that were fetched before
	fetched map[string]int // by key
	errors  int
	took    []time.Duration // by request, in order; -1 = not answered yet
}

func newWorld(seed uint64) *world {
	w := &world{net: memnet.New(seed), rng: rand.New(rand.NewPCG(seed, 1)), fetched: make(map[string]int)}
	w.net.SetConditions(memnet.Conditions{Latency: oneWay})
	sum := 0.0
	for i := range objects {
		sum += 1 / math.Pow(float64(i+1), zipf)
		w.ranks = append(w.ranks, sum)
	}
	return w
}

// key draws a key.
func (w *world) key() string {
	i := sort.SearchFloat64s(w.ranks, w.rng.Float64()*w.ranks[objects-1])
	return keyOf(i)
}

func keyOf(i int) string { return fmt.Sprintf("object %05d", i) }

// load is the origin.
func (w *world) load(ctx context.Context, key string) ([]byte, error) {
	w.mu.Lock()
	w.fetches++
	if w.fetched[key]++; w.fetched[key] > 1 {
		w.again++
	}
	w.mu.Unlock()
	select {
	case <-time.After(originTime):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return make([]byte, valueBytes), nil
}

// run sends n requests to random nodes among the first live ones, except node not.
func (w *world) run(n, live, not int) {
	var all sync.WaitGroup
	for range n {
		i := w.rng.IntN(live)
		for i == not {
			i = w.rng.IntN(live)
		}
		key := w.key()
		w.mu.Lock()
		at := len(w.took)
		w.took = append(w.took, -1)
		w.mu.Unlock()
		all.Go(func() { w.ask(i, key, at) })
		time.Sleep(spacing)
	}
	all.Wait()
}

const (
	herd     = 200 // concurrent requests for a key
	herdKeys = 20
)

// play runs a scenario with that many requests.
func (w *world) play(sc scenario, requests int) {
	if sc.requests == 0 {
		for k := range herdKeys {
			var all sync.WaitGroup
			for i := range herd {
				w.took = append(w.took, -1)
				at := len(w.took) - 1
				all.Go(func() { w.ask(i%nodes, keyOf(k), at) })
			}
			all.Wait()
			time.Sleep(time.Second)
		}
		return
	}
	w.run(requests/2, nodes, -1)
	live, not := nodes, -1
	if sc.event != nil {
		live, not = sc.event(w)
		w.again = 0
	}
	w.run(requests-requests/2, live, not)
}

func (w *world) ask(i int, key string, at int) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	start := time.Now()
	err := w.system.get(ctx, i, key)
	took := time.Since(start)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.took[at] = took; err != nil {
		w.errors++
	}
}

// end closes everything and waits until all goroutines have ended.
func (w *world) end() {
	w.system.close()
	time.Sleep(time.Minute)
	synctest.Wait()
}

func (w *world) bytes() int64 { return w.streams.Load() + w.net.Traffic().Bytes }

// latency describes the second half of the requests: the mean and the worst, and how many took more
// than 100 ms.
func (w *world) latency() (mean, worst time.Duration, slow int) {
	second := w.took[len(w.took)/2:]
	for _, d := range second {
		mean += d / time.Duration(len(second))
		if worst = max(worst, d); d > 100*time.Millisecond {
			slow++
		}
	}
	return mean, worst, slow
}

// A host is a memnet host that counts the bytes of the connections that it dials, in both directions.
type host struct {
	*memnet.Host
	w *world
}

func (w *world) host(i int) host { return host{w.net.Host(ip(i)), w} }

func ip(i int) string { return fmt.Sprintf("10.0.0.%d", i+1) }

func (h host) Dial(ctx context.Context, addr string) (net.Conn, error) {
	c, err := h.Host.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	return counted{c, &h.w.streams}, nil
}

func (h host) dial(ctx context.Context, _, addr string) (net.Conn, error) { return h.Dial(ctx, addr) }

func (h host) serve(handler http.Handler) *http.Server {
	l, err := h.Listen(h.IP() + ":80")
	if err != nil {
		panic(err)
	}
	s := &http.Server{Handler: handler}
	go s.Serve(l)
	return s
}

type counted struct {
	net.Conn
	n *atomic.Int64
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.n.Add(int64(n))
	return n, err
}

func (c counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.n.Add(int64(n))
	return n, err
}

var quiet = slog.New(slog.DiscardHandler)
