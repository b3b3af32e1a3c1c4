//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/cmd/peer/internal/origin"
)

// Without pauses, two minutes of the soak have the churn of an hour at thirty requests a second, and
// twenty seconds are a short check. With them, it leaves a machine time for other work.
var (
	soakFor   = flag.Duration("soak", 20*time.Second, "how long the soak lasts")
	soakPause = flag.Duration("soak-pause", 0, "how long each of its six clients pauses between requests")
)

const (
	soakObjects = 20_000
	soakStore   = 24 << 20 // bytes of each store: a tenth of what there is
	soakDisk    = 40 << 20 // bytes of the disk that gets full
	soakMemory  = 96 << 20 // bytes that a peer's runtime may take
)

// A soak is three peers in front of an origin, of which two are killed repeatedly.
type soak struct {
	*site
	t       *testing.T
	server  *httptest.Server
	peers   [3]*process // the first survives; its disk gets full
	dirs    [3]string
	life    [3]atomic.Int32 // goes up by one with each start and death: odd while it may be expected to answer
	broken  atomic.Bool     // the origin is
	popular []float64       // the sums of the objects' popularity
	results soakResults
}

// soakResults counts requests by their result.
type soakResults struct {
	right, atDeadPeer, originDown, cutOff atomic.Int64
	unexpected                            soakErrors
	kills                                 atomic.Int64
}

type soakErrors struct {
	mu   sync.Mutex
	list []string
	n    int
}

func (e *soakErrors) add(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.n++; len(e.list) < 10 {
		e.list = append(e.list, err.Error())
	}
}

// TestSoak runs peers under load and a memory limit, with a kill and restart every few seconds, a
// full disk once, and an origin that fails once. They never serve a wrong body, fail only while
// something that they need is broken, and at the end use no more resources than at the beginning.
func TestSoak(t *testing.T) {
	if !*long {
		t.Skip("takes half a minute: -long")
	}
	t.Setenv("GOMEMLIMIT", fmt.Sprint(soakMemory))
	s := newSoak(t)
	s.start(0)
	before := s.resources()
	s.start(1)
	s.start(2)

	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for w := range 6 {
		all.Go(func() { s.ask(ctx, uint64(w)) })
	}
	all.Go(func() { s.killAgainAndAgain(ctx) })
	s.misfortunes()
	stop()
	all.Wait()

	survivor := s.peers[0].status()
	for i := 1; i < 3; i++ {
		if corrupt := s.peers[i].status().Store.Corrupt; corrupt > 0 {
			t.Errorf("%s found %d objects corrupt", s.peers[i].name, corrupt)
		}
		s.peers[i].kill()
	}
	s.report(survivor)
	s.backToTheStart(before)
	if code := s.peers[0].stop(); code != 0 {
		t.Errorf("the survivor ended with %d\n%s", code, s.peers[0].stderr.String())
	}
}

func newSoak(t *testing.T) *soak {
	s := &soak{t: t, site: &site{Handler: &origin.Handler{Sizes: make(map[string]int64), Fresh: 15 * time.Second}}}
	s.buf.New = func() any { b := make([]byte, 64<<10); return &b }
	random := rand.New(rand.NewPCG(8, 8))
	for i := range soakObjects {
		s.Sizes[object(i)] = 200 + random.Int64N(24<<10)
		if i%500 == 7 {
			s.Sizes[object(i)] = 1 << 20
		}
		s.popular = append(s.popular, math.Pow(float64(i+1), -0.8))
		if i > 0 {
			s.popular[i] += s.popular[i-1]
		}
	}
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.broken.Load() {
			panic(http.ErrAbortHandler)
		}
		s.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.server.Close)
	s.url = s.server.URL
	base := t.TempDir()
	for i := range s.dirs {
		s.dirs[i] = filepath.Join(base, fmt.Sprint(i))
		if err := os.Mkdir(s.dirs[i], 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() == 0 {
		if err := syscall.Mount("none", s.dirs[0], "tmpfs", 0, fmt.Sprintf("size=%d", soakDisk)); err != nil {
			t.Fatalf("cannot mount a small disk: %v", err)
		}
		t.Cleanup(func() { syscall.Unmount(s.dirs[0], syscall.MNT_DETACH) })
	}
	return s
}

// start starts a peer. A restarted peer has the same addresses. Their ports are below those that the system gives to
// other processes, which may come while the peer is dead.
func (s *soak) start(i int) {
	at := func(n int) string { return fmt.Sprintf("127.0.0.1:%d", 10_000+os.Getpid()%2_000*10+3*i+n) }
	var join []string
	for _, p := range s.peers {
		if p != nil && p.gossip != at(2) {
			join = append(join, p.gossip)
		}
	}
	args := []string{"run", "--name", fmt.Sprintf("p%d", i), "--listen", at(0), "--admin", at(1), "--gossip", at(2),
		"--origin", s.url, "--store", filepath.Join(s.dirs[i], "store"), "--store-size", fmt.Sprintf("%dB", soakStore),
		"--memory-size", "4MiB", "--log-level", "error", "--profiles", "on"}
	if len(join) > 0 {
		args = append(args, "--join", strings.Join(join, ","))
	}
	s.peers[i] = spawn(s.t, args...)
	s.life[i].Add(1)
}

// ask requests popular objects from the peers in turn, until ctx ends.
func (s *soak) ask(ctx context.Context, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 3))
	addrs := [3]string{s.peers[0].listen, s.peers[1].listen, s.peers[2].listen} // they keep them
	for ctx.Err() == nil && sleep(ctx, *soakPause) {
		i := random.IntN(3)
		target := object(sort.SearchFloat64s(s.popular, random.Float64()*s.popular[soakObjects-1]))
		life, wasBroken := s.life[i].Load(), s.broken.Load()
		_, err := s.get(context.Background(), addrs[i], target)
		isBroken := s.broken.Load()
		switch {
		case err == nil:
			s.results.right.Add(1)
		case life%2 == 0 || life != s.life[i].Load():
			s.results.atDeadPeer.Add(1)
			time.Sleep(2 * time.Millisecond) // not to spin against a closed port
		case wasBroken || isBroken:
			s.results.originDown.Add(1)
		case strings.Contains(err.Error(), "breaks off"): // by a sibling that died while it sent
			s.results.cutOff.Add(1)
		default:
			s.results.unexpected.add(err)
		}
		if err != nil && (strings.Contains(err.Error(), "is wrong") || strings.Contains(err.Error(), "goes on after") || strings.Contains(err.Error(), "ends after")) {
			s.t.Error(err)
		}
	}
}

// killAgainAndAgain kills one of the mortal peers every two seconds, and restarts it half a second
// later.
func (s *soak) killAgainAndAgain(ctx context.Context) {
	for i := 1; ; i = 3 - i {
		if !sleep(ctx, 1500*time.Millisecond) {
			return
		}
		s.life[i].Add(1)
		s.peers[i].kill()
		s.results.kills.Add(1)
		sleep(ctx, 500*time.Millisecond)
		s.start(i)
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// misfortunes fills the survivor's disk in the second quarter of the soak and
// breaks the origin for a while in the third.
func (s *soak) misfortunes() {
	quarter := *soakFor / 4
	sleep(s.t.Context(), quarter)
	full := s.fillDisk()
	sleep(s.t.Context(), quarter)
	if full != "" {
		if err := os.Remove(full); err != nil {
			s.t.Error(err)
		}
	}
	s.broken.Store(true)
	sleep(s.t.Context(), min(quarter/2, 10*time.Second))
	s.broken.Store(false)
	sleep(s.t.Context(), *soakFor-2*quarter-min(quarter/2, 10*time.Second))
}

// fillDisk fills the survivor's disk, if it has one of its own.
func (s *soak) fillDisk() (path string) {
	if os.Geteuid() != 0 {
		s.t.Log("no disk gets full: that needs root")
		return ""
	}
	path = filepath.Join(s.dirs[0], "filler")
	f, err := os.Create(path)
	if err != nil {
		s.t.Error(err)
		return ""
	}
	defer f.Close()
	block := make([]byte, 64<<10)
	for range soakDisk / len(block) {
		if _, err = f.Write(block); err != nil {
			break
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		s.t.Errorf("the disk did not get full: %v", err)
	}
	return path
}

// report logs the results of the requests, and fails for unexpected ones.
func (s *soak) report(survivor admin.Status) {
	r := &s.results
	s.t.Logf("%v: %d right answers, %d at dead peers, %d without an origin, %d cut off by a death, %d kills; the survivor: %d local hits, %d sibling hits, %d origin fetches, %d inserts, %d evictions, %d write errors",
		*soakFor, r.right.Load(), r.atDeadPeer.Load(), r.originDown.Load(), r.cutOff.Load(), r.kills.Load(),
		survivor.Traffic.LocalHits, survivor.Traffic.SiblingHits, survivor.Traffic.OriginFetches,
		survivor.Store.Inserts, survivor.Store.Evictions, survivor.Store.WriteErrors)
	if r.unexpected.n > 0 {
		s.t.Errorf("%d requests failed though nothing was broken that they needed, such as\n%s", r.unexpected.n, strings.Join(r.unexpected.list, "\n"))
	}
	if r.cutOff.Load() > r.kills.Load() {
		s.t.Errorf("%d answers were cut off by %d deaths", r.cutOff.Load(), r.kills.Load())
	}
	if survivor.Store.Corrupt > 0 || survivor.Traffic.SiblingHits == 0 || survivor.Store.Evictions == 0 ||
		os.Geteuid() == 0 && survivor.Store.WriteErrors == 0 {
		s.t.Errorf("the survivor: %+v, %+v", survivor.Store, survivor.Traffic)
	}
}

// resources are the resources that a peer uses.
type resources struct{ goroutines, files, heap float64 }

func (s *soak) resources() (r resources) {
	s.t.Helper()
	s.text("/debug/pprof/heap?gc=1")
	for line := range strings.Lines(s.text("/metrics")) {
		fmt.Sscanf(line, "go_goroutines %g", &r.goroutines)
		fmt.Sscanf(line, "process_open_fds %g", &r.files)
		fmt.Sscanf(line, "go_memstats_heap_alloc_bytes %g", &r.heap)
	}
	return r
}

// text returns the survivor's admin response at a path.
func (s *soak) text(path string) string {
	s.t.Helper()
	answer, err := client.Get("http://" + s.peers[0].admin + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}

// backToTheStart waits until the survivor uses no more resources than at the start, apart from
// those that it keeps on purpose.
func (s *soak) backToTheStart(before resources) {
	const (
		kept = 4<<20 + 12<<20 // hot objects, and what is known of those on disk
		open = 45 + 2*72      // objects of 1 MiB stay open, and the two files of each segment
	)
	var now resources
	deadline := time.Now().Add(30 * time.Second)
	for {
		client.CloseIdleConnections()
		s.server.CloseClientConnections() // which the peer keeps for a minute
		now = s.resources()
		if now.goroutines <= before.goroutines+5 && now.files <= before.files+open && now.heap <= before.heap+kept {
			s.t.Logf("goroutines %g, then %g; files %g, then %g; heap %.1f MiB, then %.1f", before.goroutines, now.goroutines,
				before.files, now.files, before.heap/(1<<20), now.heap/(1<<20))
			return
		}
		if time.Now().After(deadline) {
			s.t.Errorf("the survivor held %+v and holds %+v\n%s", before, now, s.text("/debug/pprof/goroutine?debug=1"))
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
}
