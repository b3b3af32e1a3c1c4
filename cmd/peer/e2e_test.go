package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/demo"
	"github.com/summarycache/summarycache/cmd/peer/internal/origin"
)

// long enables tests that take minutes, such as a whole trace.
var long = flag.Bool("long", false, "also test what takes minutes")

// A site is an origin, with what the test records about it.
type site struct {
	*origin.Handler
	url string
	buf sync.Pool
}

func newSite(t *testing.T, objects int, size int64) *site {
	t.Helper()
	s := &site{Handler: &origin.Handler{Sizes: make(map[string]int64)}}
	s.buf.New = func() any { b := make([]byte, 16<<10); return &b }
	for i := range objects {
		s.Sizes[object(i)] = size
	}
	server := httptest.NewServer(s.Handler)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func object(i int) string { return fmt.Sprintf("/object/%d", i) }

var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: time.Minute}

// get requests an object from a peer, checks the body, and returns Cache-Status.
func (s *site) get(ctx context.Context, addr, target string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+target, nil)
	if err != nil {
		return "", err
	}
	answer, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	status := answer.Header.Get("Cache-Status")
	if answer.StatusCode != http.StatusOK {
		return status, fmt.Errorf("%s of %s: %s (%s)", target, addr, answer.Status, status)
	}
	buf := s.buf.Get().(*[]byte)
	defer s.buf.Put(buf)
	return status, origin.Check(answer.Body, target, s.Sizes[target], *buf)
}

// fill requests the objects from first up to last, exclusive, from a peer, several at a time.
func (s *site) fill(t *testing.T, addr string, first, last int) {
	t.Helper()
	var all sync.WaitGroup
	const workers = 16
	failed := make([]error, workers)
	for w := range workers {
		all.Go(func() {
			for i := first + w; i < last && failed[w] == nil; i += workers {
				_, failed[w] = s.get(t.Context(), addr, object(i))
			}
		})
	}
	all.Wait()
	if err := errors.Join(failed...); err != nil {
		t.Fatal(err)
	}
}

func (s *site) peer(t *testing.T, name, dir string, join ...string) *process {
	t.Helper()
	args := []string{"run", "--name", name, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--gossip", "127.0.0.1:0",
		"--origin", s.url, "--store", dir, "--store-size", "2GiB", "--memory-size", "16MiB", "--objects", fmt.Sprint(max(len(s.Sizes), 1000)),
		"--sibling-compare", "0"} // which fetches from the origin what a sibling gave
	if len(join) > 0 {
		args = append(args, "--join", strings.Join(join, ","))
	}
	return spawn(t, args...)
}

// knows reports whether p has the current digest of another live peer, of that
// many objects.
func (p *process) knows(name string, objects uint64) func() bool {
	return func() bool {
		m, ok := p.member(name)
		return ok && m.State == "alive" && m.Current && m.Keys == objects
	}
}

// load requests objects below limit from peers until it is stopped. stop returns the number of
// requests and the errors.
func (s *site) load(t *testing.T, limit int, addrs ...string) (stop func() (int, error)) {
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	asked, failed := make([]int, len(addrs)), make([]error, len(addrs))
	for w, addr := range addrs {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 1))
			tick := time.NewTicker(4 * time.Millisecond)
			defer tick.Stop()
			for ctx.Err() == nil {
				if _, err := s.get(context.Background(), addr, object(random.IntN(limit))); err != nil {
					failed[w] = errors.Join(failed[w], err)
				}
				asked[w]++
				<-tick.C
			}
		})
	}
	return func() (int, error) {
		cancel()
		all.Wait()
		sum := 0
		for _, n := range asked {
			sum += n
		}
		return sum, errors.Join(failed...)
	}
}

// A peer is killed under load, and restarted with its store and without.
func TestKilledPeer(t *testing.T) {
	t.Parallel()
	const all, loaded = 1300, 1000 // the load asks for the first thousand
	s := newSite(t, all, 3000)
	store := filepath.Join(t.TempDir(), "c")
	a := s.peer(t, "a", filepath.Join(t.TempDir(), "a"))
	b := s.peer(t, "b", filepath.Join(t.TempDir(), "b"), a.gossip)
	c := s.peer(t, "c", store, a.gossip)
	s.fill(t, c.listen, 0, all)
	for _, p := range []*process{a, b} {
		eventually(t, time.Minute, p.name+" has the digest of c", p.knows("c", all))
	}

	complain := s.watch(a, b)
	stop := s.load(t, loaded, a.listen, b.listen)
	eventually(t, time.Minute, "c answers siblings", func() bool { return c.status().Traffic.ServedToSiblings > 100 })
	complain(t)
	c.kill()
	dead := func(p *process) func() bool {
		return func() bool { m, ok := p.member("c"); return ok && m.State == "dead" }
	}
	for _, p := range []*process{a, b} {
		took := eventually(t, time.Minute, p.name+" knows that c is dead", dead(p))
		t.Logf("%s knew that c was dead after %v", p.name, took.Round(time.Millisecond))
	}
	// A question counts when it ends, and some were under way.
	eventually(t, time.Minute, "nobody asks the dead peer any more", func() bool {
		before := [2]int64{asked(a, "c"), asked(b, "c")}
		served := a.status().Traffic.Requests
		eventually(t, time.Minute, "the load goes on", func() bool { return a.status().Traffic.Requests > served+200 })
		return before == [2]int64{asked(a, "c"), asked(b, "c")}
	})
	n, err := stop()
	if err != nil || n == 0 {
		t.Errorf("of %d requests during the death some failed: %v", n, err)
	}

	c = s.peer(t, "c", store, a.gossip)
	for _, p := range []*process{a, b} {
		eventually(t, time.Minute, p.name+" has the digest of c as it was", p.knows("c", all))
	}
	complain = s.watch(a)
	s.fill(t, a.listen, loaded, loaded+100)
	complain(t)

	c.kill()
	if err := os.RemoveAll(store); err != nil {
		t.Fatal(err)
	}
	c = s.peer(t, "c", store, a.gossip)
	for _, p := range []*process{a, b} {
		eventually(t, time.Minute, p.name+" has the digest of c, which is empty", p.knows("c", 0))
	}
	falseHits := b.status().Traffic.FalseHits
	s.fill(t, b.listen, loaded+100, loaded+300)
	if n := b.status().Traffic.FalseHits - falseHits; n > 2 {
		t.Errorf("%d of 200 questions went to the emptied peer", n)
	}
	if code := c.stop(); code != 0 {
		t.Errorf("a peer that is stopped ends with %d:\n%s", code, c.stderr.String())
	}
}

// watch returns a function that reports objects that were fetched from the origin since, although a
// sibling held them. It allows for a busy machine: a slow sibling is hedged by the origin, and
// suspended for half a second when the hedge has won three times in a row or the sibling has
// failed.
func (s *site) watch(by ...*process) (complain func(t *testing.T)) {
	count := func() (fetched int, slow uint64) {
		fetched = s.Requests() // first: a hedge is counted before it is asked
		for _, p := range by {
			traffic := p.status().Traffic
			slow += traffic.Hedges + traffic.SiblingErrors
		}
		return fetched, slow
	}
	fetchedBefore, slowBefore := count()
	return func(t *testing.T) {
		t.Helper()
		fetched, slow := count()
		if fetched, slow = fetched-fetchedBefore, slow-slowBefore; fetched > 0 && slow == 0 {
			t.Errorf("%d objects were fetched from the origin though a sibling holds them, and none was slow", fetched)
		} else if fetched > 0 {
			t.Logf("%d objects were fetched from the origin; %d requests to siblings were hedged or failed", fetched, slow)
		}
	}
}

// asked returns how often p sent another peer a request for an object.
func asked(p *process, name string) int64 {
	m, _ := p.member(name)
	return m.Hits + m.FalseHits + m.Failures
}

// The whole trace, replayed as by a user.
func TestTraceReachesItsTargets(t *testing.T) {
	if !*long {
		t.Skip("takes half a minute: -long")
	}
	code, stdout, stderr := call(t, "demo", "--trace", "../../sim/systems/testdata/elastic-apache.ptrace.gz", "--json")
	var r demo.Result
	if err := json.Unmarshal([]byte(stdout), &r); code != 0 || err != nil {
		t.Fatalf("peer demo = %d, %v\n%s", code, err, stderr)
	}
	t.Logf("%d requests, %d origin fetches, %.2f %% over the floor of %d; %d hedges; %.2f %% false hits of %d questions; %d errors",
		r.Total.Requests, r.Total.OriginFetches, 100*r.OverFloor, r.Floor(), r.Total.Hedges, 100*r.FalseShare, r.Total.SiblingRequests, r.Errors)
	if r.Total.Requests != 9744 || r.Workload.Objects != 1425 || r.Errors != 0 || unhedged(&r) > 1.03 || r.FalseShare > 0.01 {
		t.Errorf("want 9744 requests for 1425 objects, no error, origin fetches at most 3 %% over the floor, false hits below 1 %%")
	}
}

// Two forward proxies, 20,000 requests over 5,000 objects, Zipf 0.9, and the default policy: there
// is hardly more than one origin fetch per object, and the messages take about a tenth of the bytes of
// ICP's: 0.085 on a quiet machine and up to 0.101 on a busy one, where there are more lookups and smaller
// deltas. What the bytes are apart from the machine, TestBytesOnTheWire of package gossip holds.
func TestTwoPeersReachTheirTargets(t *testing.T) {
	if !*long {
		t.Skip("takes more than a minute: -long")
	}
	code, stdout, stderr := call(t, "demo", "--forward", "--peers", "2", "--requests", "20000", "--objects", "5000", "--skew", "0.9", "--json")
	var r demo.Result
	if err := json.Unmarshal([]byte(stdout), &r); code != 0 || err != nil {
		t.Fatalf("peer demo = %d, %v\n%s", code, err, stderr)
	}
	ours, icp := r.Compare[0], r.Compare[1]
	t.Logf("%d requests, %d origin fetches, %.2f %% over the floor of %d; %d hedges; %d bytes of messages, ICP's %d, %.3f of them; %.2f %% false hits of %d questions",
		r.Total.Requests, r.Total.OriginFetches, 100*r.OverFloor, r.Workload.Objects, r.Total.Hedges, ours.MessageBytes, icp.MessageBytes,
		float64(ours.MessageBytes)/float64(icp.MessageBytes), 100*r.FalseShare, r.Total.SiblingRequests)
	if r.Total.Requests != 20000 || r.Errors != 0 {
		t.Errorf("%d requests, %d errors, the first: %s", r.Total.Requests, r.Errors, r.FirstError)
	}
	if unhedged(&r) > 1.01 || r.FalseShare > 0.005 || 8*ours.MessageBytes > icp.MessageBytes {
		t.Error("want origin fetches within 1 % of the floor, an eighth of ICP's bytes, and less than 0.5 % false hits")
	}
}

// unhedged returns the origin fetches without hedges, as a share of the floor, which are many on a busy machine.
func unhedged(r *demo.Result) float64 {
	return float64(r.Total.OriginFetches-r.Total.Hedges) / float64(r.Floor())
}
