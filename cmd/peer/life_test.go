//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/cmd/peer/internal/config"
	"github.com/summarycache/summarycache/cmd/peer/internal/origin"
	"github.com/summarycache/summarycache/digest"
)

var (
	lifeFor   = flag.Duration("life", 0, "how long TestLife lasts; 0 = it is skipped. A release takes 2h")
	lifeStore = flag.String("life-store", "1GiB", "the --store-size of its peers, which is turned over twenty times")
	lifeOut   = flag.String("life-out", "", "directory for its samples; default: none are kept")
)

const (
	lifeTurns    = 20
	lifeMean     = 32 << 10 // bytes of an object, as the digest is planned for
	lifeSamples  = 240
	lifeKills    = 20
	lifePurges   = 40
	lifeAbsent   = 50_000 // absent objects asked of a digest for each sample
	lifeHitShare = 0.5    // of the requests are for what was asked for before
)

// A life is three peers with default settings, in which objects come and go until the stores have
// been turned over twenty times.
type life struct {
	*site
	t       *testing.T
	peers   [3]*process // the first is never killed, and is looked at
	dirs    [3]string
	listen  [3]string       // where they listen, all their lives
	state   [3]atomic.Int32 // as in soak
	total   int             // objects that are asked for in all
	window  int             // objects that are popular at a time
	lag     int             // new ones in about two seconds
	began   time.Time
	newest  atomic.Int64
	results lifeResults

	mu    sync.Mutex
	times []time.Duration // of the first peer's answers since the last sample
}

// lifeResults counts requests by their result, and kills.
type lifeResults struct {
	right, atDeadPeer, cutOff, kills atomic.Int64
	unexpected                       soakErrors
}

// TestLife runs a cluster with default settings while its stores fill and are turned over twenty
// times, with kills and purges. It samples the first peer's resources, latency and false positives.
// At the end none of these may have grown since the first turnover.
func TestLife(t *testing.T) {
	if *lifeFor == 0 {
		t.Skip("takes hours: -life 2h")
	}
	l := newLife(t)
	for i := range l.peers {
		l.start(i)
		l.listen[i] = l.peers[i].listen
	}
	ctx, stop := context.WithTimeout(t.Context(), *lifeFor)
	defer stop()
	l.began = time.Now()
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() { l.ask(ctx, uint64(w)) })
	}
	all.Go(func() { l.mishaps(ctx) })
	samples := l.watch(ctx)
	all.Wait()
	l.atRest()
	l.judge(samples)
}

func newLife(t *testing.T) *life {
	size, err := config.ParseSize(*lifeStore)
	if err != nil {
		t.Fatal(err)
	}
	l := &life{t: t, site: &site{Handler: &origin.Handler{Sizes: make(map[string]int64), Fresh: 24 * time.Hour}}}
	l.buf.New = func() any { b := make([]byte, 64<<10); return &b }
	l.window = int(size / lifeMean)
	l.total = (lifeTurns + 1) * l.window
	l.lag = 1 + int(float64(l.total)*2/lifeFor.Seconds())
	random := rand.New(rand.NewPCG(1, 2))
	for i := range l.total {
		n := int64(random.ExpFloat64() * 0.75 * lifeMean)
		if i%100 == 7 {
			n = lifeMean * 25 // a quarter of the bytes are in large ones
		}
		l.Sizes[object(i)] = min(n+100, 4<<20)
	}
	server := httptest.NewServer(l.Handler)
	t.Cleanup(server.Close)
	l.url = server.URL
	base := t.TempDir()
	for i := range l.dirs {
		l.dirs[i] = filepath.Join(base, fmt.Sprint(i))
	}
	return l
}

// start starts a peer. A restarted peer has the same addresses and store.
func (l *life) start(i int) {
	at := started{name: fmt.Sprintf("p%d", i), listen: "127.0.0.1:0", admin: "127.0.0.1:0", gossip: "127.0.0.1:0"}
	if l.peers[i] != nil {
		at = l.peers[i].started
	}
	args := []string{"run", "--name", at.name, "--listen", at.listen, "--admin", at.admin, "--gossip", at.gossip,
		"--origin", l.url, "--store", l.dirs[i], "--store-size", *lifeStore, "--log-level", "warn"}
	for k, p := range l.peers {
		if p != nil && k != i {
			args = append(args, "--join", p.gossip)
		}
	}
	l.peers[i] = spawn(l.t, args...)
	l.state[i].Add(1)
}

// ask requests new objects from the peers in turn, at the pace that turns the stores over, and in
// between objects that were requested recently.
func (l *life) ask(ctx context.Context, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 3))
	for ctx.Err() == nil {
		i := l.newest.Add(1) - 1
		due := l.began.Add(time.Duration(float64(*lifeFor) * float64(i) / float64(l.total)))
		if int(i) >= l.total || !sleep(ctx, time.Until(due)) {
			return
		}
		for k, p := range random.Perm(3) { // the others some seconds later, as users of theirs come
			if then := int(i) - k*l.lag; then >= 0 {
				l.get1(p, then)
			}
		}
		for random.Float64() < lifeHitShare {
			back := int(float64(l.window) * 0.8 * random.Float64() * random.Float64()) // the newer, the likelier
			l.get1(random.IntN(3), max(0, int(i)-back))
		}
	}
}

func (l *life) get1(p, i int) {
	was := l.state[p].Load()
	begun := time.Now()
	_, err := l.get(context.Background(), l.listen[p], object(i))
	switch {
	case err == nil:
		l.results.right.Add(1)
		if p == 0 {
			l.mu.Lock()
			l.times = append(l.times, time.Since(begun))
			l.mu.Unlock()
		}
	case strings.Contains(err.Error(), "is wrong"), strings.Contains(err.Error(), "goes on after"), strings.Contains(err.Error(), "ends after"):
		l.t.Error(err)
	case was%2 == 0 || was != l.state[p].Load():
		l.results.atDeadPeer.Add(1)
	case strings.Contains(err.Error(), "breaks off"): // by a sibling that died while it sent
		l.results.cutOff.Add(1)
	default:
		l.results.unexpected.add(err)
	}
}

// mishaps occasionally kills one of the mortal peers, and purges.
func (l *life) mishaps(ctx context.Context) {
	const steps = lifeKills * 2
	for i := 1; sleep(ctx, *lifeFor/(steps+1)); i++ {
		if i%2 == 0 {
			dies := 1 + i/2%2
			l.state[dies].Add(1)
			l.peers[dies].kill()
			l.results.kills.Add(1)
			sleep(ctx, *lifeFor/400)
			l.start(dies)
		}
		for range lifePurges / steps {
			// Ten in a hundred, by their prefix, wherever they are.
			order := admin.PurgeRequest{URL: fmt.Sprintf("/object/%d", max(1, int(l.newest.Load())/100)), Prefix: true}
			if _, err := admin.Client(l.peers[0].admin).Purge(ctx, order, ""); err != nil {
				l.results.unexpected.add(err)
			}
		}
	}
}

// A lifeSample is the state of the first peer at one time.
type lifeSample struct {
	Seconds                           float64
	Turns                             float64 // of the store since the beginning
	Objects                           float64
	ResidentMiB, HeapMiB              float64
	Goroutines, Files                 float64
	Median, P99                       float64 // of its answers since the last sample, ms
	FalsePositives, Promised          float64 // of its digest: of absent objects asked, and as it says; %
	Missing                           float64 // objects listed less those in the digest
	LocalHits, SiblingHits, FalseHits float64 // since the start
	Healthy                           float64 // 1 if /healthz said 200
}

// watch takes samples until ctx ends, and writes each at once.
func (l *life) watch(ctx context.Context) (list []lifeSample) {
	for sleep(ctx, *lifeFor/lifeSamples) {
		list = append(list, l.sample())
		if *lifeOut == "" {
			continue
		}
		if err := writeLife(*lifeOut, list); err != nil {
			l.t.Error(err)
		}
	}
	return list
}

func (l *life) sample() lifeSample {
	at := l.peers[0].admin
	s := l.peers[0].status()
	out := lifeSample{Seconds: time.Since(l.began).Seconds(), Objects: float64(s.Store.Objects),
		Turns:     float64(s.Store.Evictions) / float64(max(1, s.Store.Objects)),
		LocalHits: float64(s.Traffic.LocalHits), SiblingHits: float64(s.Traffic.SiblingHits), FalseHits: float64(s.Traffic.FalseHits),
		Missing: float64(s.Store.Listed - s.Digest.Keys), Promised: 100 * s.Digest.FalsePositiveRate}
	var resident, heap float64
	for line := range strings.Lines(l.page(at, "/metrics")) {
		fmt.Sscanf(line, "go_goroutines %g", &out.Goroutines)
		fmt.Sscanf(line, "process_open_fds %g", &out.Files)
		fmt.Sscanf(line, "process_resident_memory_bytes %g", &resident)
		fmt.Sscanf(line, "go_memstats_heap_alloc_bytes %g", &heap)
	}
	out.ResidentMiB, out.HeapMiB = resident/(1<<20), heap/(1<<20)
	if strings.HasPrefix(l.page(at, "/healthz"), "ok") || s.Health.OK {
		out.Healthy = 1
	}
	if f, err := digest.DecodeFilter([]byte(l.page(at, "/digest")), digest.Limits{Profile: digest.HTTP}); err != nil {
		l.t.Errorf("the digest: %v", err)
	} else {
		wrong := 0
		for i := range lifeAbsent {
			if f.MayContain(digest.KeyOfString(f.Geometry().Seed, fmt.Sprintf("GET %s/absent/%d", l.url, i))) {
				wrong++
			}
		}
		out.FalsePositives = 100 * float64(wrong) / lifeAbsent
	}
	l.mu.Lock()
	times := l.times
	l.times = nil
	l.mu.Unlock()
	if len(times) > 0 {
		slices.Sort(times)
		out.Median = 1000 * times[len(times)/2].Seconds()
		out.P99 = 1000 * times[len(times)*99/100].Seconds()
	}
	return out
}

func (l *life) page(at, path string) string {
	answer, err := client.Get("http://" + at + path)
	if err != nil {
		l.t.Fatal(err)
	}
	defer answer.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(answer.Body); err != nil {
		l.t.Fatal(err)
	}
	return b.String()
}

// atRest waits until every peer's digest has what its store advertises.
func (l *life) atRest() {
	for _, p := range l.peers {
		eventually(l.t, time.Minute, p.name+"'s digest has what its store lists", func() bool {
			s := p.status()
			return s.Store.Listed == s.Digest.Keys && uint64(s.Digest.Keys) == s.Digest.Published
		})
	}
}

// judge compares the end with the state after the first turnover.
func (l *life) judge(samples []lifeSample) {
	r, s := &l.results, l.peers[0].status()
	l.t.Logf("%v: %d right answers, %d at dead peers, %d cut off by a death, %d kills; %d inserts, %d evictions, %d local hits, %d sibling hits, %d false hits, %d origin fetches",
		*lifeFor, r.right.Load(), r.atDeadPeer.Load(), r.cutOff.Load(), r.kills.Load(), s.Store.Inserts, s.Store.Evictions,
		s.Traffic.LocalHits, s.Traffic.SiblingHits, s.Traffic.FalseHits, s.Traffic.OriginFetches)
	if r.unexpected.n > 0 {
		l.t.Errorf("%d requests failed though nothing was broken that they needed, such as\n%s", r.unexpected.n, strings.Join(r.unexpected.list, "\n"))
	}
	first := slices.IndexFunc(samples, func(s lifeSample) bool { return s.Turns >= 2 })
	if first < 0 || len(samples)-first < 20 {
		l.t.Fatalf("the store was not turned over often enough: %d samples after two turns", len(samples)-first)
	}
	early, late := samples[first:first+10], samples[len(samples)-10:]
	if turns := late[9].Turns; turns < lifeTurns-2 {
		l.t.Errorf("turned over %.1f times, want %d", turns, lifeTurns)
	}
	for _, m := range []struct {
		name  string
		of    func(lifeSample) float64
		grows float64 // at most, plus room
		room  float64
	}{
		{"resident MiB", func(s lifeSample) float64 { return s.ResidentMiB }, 1.25, 8},
		{"goroutines", func(s lifeSample) float64 { return s.Goroutines }, 1.5, 20},
		{"files", func(s lifeSample) float64 { return s.Files }, 1.5, 50},
		{"false positives, %", func(s lifeSample) float64 { return s.FalsePositives }, 1.5, 0.05},
	} {
		was, is := mean(early, m.of), mean(late, m.of)
		l.t.Logf("%s: %.3g after two turnovers, %.3g in the end", m.name, was, is)
		if is > m.grows*was+m.room {
			l.t.Errorf("%s grew from %.3g to %.3g", m.name, was, is)
		}
	}
	if sick := slices.IndexFunc(samples, func(s lifeSample) bool { return s.Healthy == 0 }); sick >= 0 {
		l.t.Errorf("not healthy after %.0f s", samples[sick].Seconds)
	}
}

func mean(samples []lifeSample, of func(lifeSample) float64) (sum float64) {
	for _, s := range samples {
		sum += of(s) / float64(len(samples))
	}
	return sum
}

// writeLife writes the samples to life.csv.
func writeLife(dir string, samples []lifeSample) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, "life.csv"))
	if err != nil {
		return err
	}
	defer f.Close()
	w := csv.NewWriter(f)
	kind := reflect.TypeFor[lifeSample]()
	var head []string
	for i := range kind.NumField() {
		head = append(head, kind.Field(i).Name)
	}
	w.Write(head)
	for _, s := range samples {
		var row []string
		for i := range kind.NumField() {
			row = append(row, strconv.FormatFloat(reflect.ValueOf(s).Field(i).Float(), 'g', 6, 64))
		}
		w.Write(row)
	}
	w.Flush()
	return w.Error()
}
