//go:build linux && !race

package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/engine"
)

// A largeSite is an origin with large objects, which sends 20 MB/s in all.
type largeSite struct {
	*httptest.Server
	body []byte
	sent atomic.Int64
	mu   sync.Mutex
	next time.Time // when the next bytes may be sent
}

const largeRate = 20e6

func newLargeSite(t *testing.T, size int) *largeSite {
	s := &largeSite{body: make([]byte, size)}
	rand.NewChaCha8([32]byte{1}).Read(s.body)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		w.Header().Set("Etag", `"1"`)
		http.ServeContent(&limited{w, s}, r, "x", time.Time{}, bytes.NewReader(s.body))
	}))
	t.Cleanup(s.Close)
	return s
}

type limited struct {
	http.ResponseWriter
	s *largeSite
}

func (l *limited) Write(p []byte) (done int, err error) {
	for len(p) > 0 && err == nil {
		part := p[:min(len(p), 16<<10)]
		l.s.mu.Lock()
		now := time.Now()
		if l.s.next.Before(now) {
			l.s.next = now
		}
		l.s.next = l.s.next.Add(time.Duration(float64(len(part)) / largeRate * 1e9))
		wait := l.s.next.Sub(now)
		l.s.mu.Unlock()
		time.Sleep(wait)
		var n int
		n, err = l.ResponseWriter.Write(part)
		l.s.sent.Add(int64(n))
		done, p = done+n, p[n:]
	}
	return done, err
}

// part requests the bytes from first to end, exclusive, of an object, and returns after how long the first
// of them came. first 0 and end 0 are the whole.
func (s *largeSite) part(addr, object string, first, end int, each func(n int)) (wait time.Duration, err error) {
	began := time.Now()
	r, _ := http.NewRequest("GET", "http://"+addr+object, nil)
	if end == 0 {
		end = len(s.body)
	} else {
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", first, end-1))
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	buf := make([]byte, 64<<10)
	at := first
	for {
		n, err := resp.Body.Read(buf)
		if wait == 0 {
			wait = time.Since(began)
		}
		if at+n > end || !bytes.Equal(buf[:n], s.body[at:at+n]) {
			return wait, fmt.Errorf("%s %d-%d: wrong bytes at %d (%s)", object, first, end, at, resp.Status)
		}
		at += n
		if each != nil {
			each(at)
		}
		switch {
		case err == io.EOF && at == end:
			return wait, nil
		case err != nil:
			return wait, fmt.Errorf("%s %d-%d: %w at %d (%s)", object, first, end, err, at, resp.Status)
		}
	}
}

func (s *largeSite) peer(t *testing.T, name string, join ...string) *process {
	args := []string{"run", "--name", name, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--gossip", "127.0.0.1:0", "--objects", "10000",
		"--origin", s.URL, "--store", filepath.Join(t.TempDir(), name), "--store-size", "2GiB", "--memory-size", "8MiB", "--sibling-compare", "0"}
	if len(join) > 0 {
		args = append(args, "--join", join[0])
	}
	return spawn(t, args...)
}

// TestSlices: clients at three peers begin at random places of a large object at once. The origin sends it
// once, and nobody waits for more than the bytes before its place in its slice. Then random ranges at two
// peers, a peer that is killed while its siblings send from it, and curl that goes on with a download.
func TestSlices(t *testing.T) {
	size, ranges := 24<<20, 200
	if *long {
		size, ranges = 256<<20, 10_000
	}
	size += 12345
	s := newLargeSite(t, size)
	a := s.peer(t, "a")
	b, c := s.peer(t, "b", a.gossip), s.peer(t, "c", a.gossip)
	eventually(t, time.Minute, "all know each other", func() bool { return b.knows("a", 0)() && c.knows("b", 0)() && a.knows("c", 0)() })
	peers := []*process{a, b, c}
	var rest [3]int64
	for i, p := range peers {
		rest[i], _ = p.memory()
	}
	random := rand.New(rand.NewPCG(1, 1))
	var all sync.WaitGroup
	before := 0
	waits := make([]time.Duration, 10)
	for i := range waits {
		first := random.IntN(size - 1)
		before += first % engine.SliceSize
		all.Go(func() {
			var err error
			if waits[i], err = s.part(peers[i%3].listen, "/large", first, size, nil); err != nil {
				t.Error(err)
			}
		})
	}
	began := time.Now()
	all.Wait()
	t.Logf("first bytes after %v, with %.1f MB before them in their slices; all after %v; the origin sent %.3f times the object", waits, float64(before)/1e6,
		time.Since(began).Round(time.Millisecond), float64(s.sent.Load())/float64(size))
	for i, p := range peers {
		_, peak := p.memory()
		t.Logf("%s: %d MiB over rest", p.name, (peak-rest[i])>>20)
		if peak-rest[i] > 64<<20 {
			t.Errorf("%s took %d MiB over rest", p.name, (peak-rest[i])>>20)
		}
	}
	// On a busy machine a sibling may be so late that a hedge of a slice goes to the origin, or the rest of one.
	var late uint64
	for _, p := range peers {
		traffic := p.status().Traffic
		late += traffic.Hedges + traffic.BodiesTakenOver + traffic.SiblingErrors
	}
	t.Logf("siblings were late %d times", late)
	if sent := s.sent.Load(); float64(sent) > 1.02*float64(size)+float64(1+late)*engine.SliceSize {
		t.Errorf("the origin sent %d bytes of %d, and siblings were late %d times", sent, size, late)
	}
	s.randomRanges(t, ranges, b, c)
	s.resumedDownload(t, b)
	s.killed(t, a, c)
}

// randomRanges requests n random ranges of the object at peers.
func (s *largeSite) randomRanges(t *testing.T, n int, peers ...*process) {
	random, sent := rand.New(rand.NewPCG(2, 1)), s.sent.Load()
	for i := range n {
		first := random.IntN(len(s.body))
		end := min(len(s.body), first+1+random.IntN(1<<random.IntN(24)))
		if _, err := s.part(peers[i%len(peers)].listen, "/large", first, end, nil); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d ranges: the origin sent %d bytes", n, s.sent.Load()-sent)
}

// resumedDownload goes on with a download by curl.
func (s *largeSite) resumedDownload(t *testing.T, p *process) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Log("there is no curl")
		return
	}
	file := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(file, s.body[:5_000_001], 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(curl, "-sS", "-C", "-", "-o", file, "http://"+p.listen+"/large").CombinedOutput(); err != nil {
		t.Errorf("curl: %v, %s", err, out)
	}
	if got, _ := os.ReadFile(file); !bytes.Equal(got, s.body) {
		t.Errorf("curl got %d bytes, which are not those of the origin", len(got))
	}
}

// killed lets a peer get an object that holder alone has, and kills that in the middle.
func (s *largeSite) killed(t *testing.T, holder, p *process) {
	if _, err := s.part(holder.listen, "/other", 0, len(s.body), nil); err != nil {
		t.Fatal(err)
	}
	sent := s.sent.Load()
	var once sync.Once
	if _, err := s.part(p.listen, "/other", 0, 0, func(n int) {
		if n > len(s.body)/2 {
			once.Do(holder.kill)
		}
	}); err != nil {
		t.Error(err)
	}
	t.Logf("a sibling killed in the middle: the origin sent %.2f of the object", float64(s.sent.Load()-sent)/float64(len(s.body)))
}
