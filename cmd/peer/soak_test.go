//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/origin"
)

// Without pauses, two minutes of the soak have the churn of an hour at thirty requests a second, and
// twenty seconds are a short check. With them, it leaves a machine time for other work.
var (
	soakFor   = flag.Duration("soak", 20*time.Second, "how long the soak lasts. A release takes 2h")
	soakPause = flag.Duration("soak-pause", 0, "how long each of its six clients pauses between requests")
	soakSeed  = flag.Uint64("soak-seed", 1, "of what happens in the soak, and when")
)

const (
	soakPeers  = 5
	soakSmall  = 9_000    // objects of up to 24 KiB
	soakLarge  = 6        // objects that are kept in slices
	soakStore  = 24 << 20 // bytes of each store: a quarter of what there is
	soakDisk   = 40 << 20 // bytes of the disk that gets full
	soakMemory = 96 << 20 // bytes that a peer's runtime may take
	soakLate   = time.Minute
)

// A soak is five peers in two zones, of which one keeps no digests, before an origin whose objects change. The first
// peer never ends; its disk gets full.
type soak struct {
	t       *testing.T
	random  *rand.Rand // of what happens
	dir     string
	peers   [soakPeers]*process
	life    [soakPeers]atomic.Int32 // goes up by one with each start and death: odd while it may be expected to answer
	listen  [soakPeers]string       // where they listen, all their lives
	origin  *http.Server
	broken  atomic.Bool  // the origin is
	changed atomic.Int64 // when the origin was moved or mended, Unix time in ns
	deaths  atomic.Int32
	// replaced goes up by one when a peer's program begins to be replaced, and when it was.
	replaced [soakPeers]atomic.Int32
	last     atomic.Value // what happened last, a string

	version [soakSmall + soakLarge]atomic.Int32
	// floor is the oldest version that a request to a peer may get, by what purges and writes have promised.
	floor [soakPeers][soakSmall + soakLarge]atomic.Int32

	results  soakResults
	happened map[string]int
}

// soakResults counts requests by their result.
type soakResults struct {
	right, rightOfLarge           atomic.Int64
	atDeadPeer, originDown        atomic.Int64
	cutByDeath, cutByNewerVersion atomic.Int64
	cutByReplacement              atomic.Int64
	unexpected                    soakErrors
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

// TestSoak does to a cluster what operators and machines do to it, while clients send requests: peers are killed, stopped, replaced
// and reloaded, the origin moves and breaks, a disk gets full, and objects change, by purges or writes. No answer has
// a wrong byte, bytes of two versions, or a version that a purge had promised away. None fails, but for what was broken
// just then. At the end the first peer uses no more resources than at the beginning.
func TestSoak(t *testing.T) {
	if !*long {
		t.Skip("takes half a minute: -long")
	}
	s := newSoak(t)
	s.start(0)
	before := s.resources()
	for i := 1; i < soakPeers; i++ {
		s.start(i)
	}
	ctx, stop := context.WithTimeout(t.Context(), *soakFor)
	defer stop()
	var all sync.WaitGroup
	for w := range 6 {
		all.Go(func() { s.ask(ctx, uint64(w)) })
	}
	all.Go(func() { s.changeObjects(ctx) })
	s.happen(ctx)
	all.Wait()

	for i, p := range s.peers {
		status := p.status()
		if status.Store.Corrupt > 0 {
			t.Errorf("%s found %d objects corrupt", p.name, status.Store.Corrupt)
		}
		if i > 0 {
			s.stop(i)
			continue
		}
		t.Logf("%s: %d local hits, %d sibling hits, %d origin fetches, %d inserts, %d evictions, %d write errors", p.name, status.Traffic.LocalHits,
			status.Traffic.SiblingHits, status.Traffic.OriginFetches, status.Store.Inserts, status.Store.Evictions, status.Store.WriteErrors)
	}
	s.report()
	s.backToTheStart(before)
	s.stop(0)
}

// report logs the results of the requests, and fails for unexpected ones.
func (s *soak) report() {
	r := &s.results
	s.t.Logf("seed %d, %v: %d right answers, %d of them of large objects, %d failed at dead peers, %d without an origin, %d were cut by a death, %d by a replacement, %d large ones by a newer version; what happened: %v",
		*soakSeed, *soakFor, r.right.Load(), r.rightOfLarge.Load(), r.atDeadPeer.Load(), r.originDown.Load(), r.cutByDeath.Load(), r.cutByReplacement.Load(), r.cutByNewerVersion.Load(), s.happened)
	if r.unexpected.n > 0 {
		s.t.Errorf("%d requests failed though nothing was broken that they needed, such as\n%s", r.unexpected.n, strings.Join(r.unexpected.list, "\n"))
	}
	if r.cutByDeath.Load() > int64(s.deaths.Load()) {
		s.t.Errorf("%d answers were cut by %d deaths", r.cutByDeath.Load(), s.deaths.Load())
	}
	if r.cutByReplacement.Load() > int64(s.happened["replaced"]/10) {
		s.t.Errorf("%d answers were cut by %d replacements", r.cutByReplacement.Load(), s.happened["replaced"])
	}
	if r.right.Load() == 0 || r.rightOfLarge.Load() == 0 {
		s.t.Error("nothing was answered")
	}
}

// ask requests objects, and parts of large ones, from the peers in turn, until ctx ends.
func (s *soak) ask(ctx context.Context, seed uint64) {
	random := rand.New(rand.NewPCG(*soakSeed, seed))
	buf := make([]byte, 64<<10)
	for ctx.Err() == nil && sleep(ctx, *soakPause) {
		i, object := random.IntN(soakPeers), popular(random)
		if random.IntN(300) == 0 {
			object = soakSmall + random.IntN(soakLarge)
		}
		began, wasBroken, life, deaths, replaced := time.Now(), s.broken.Load(), s.life[i].Load(), s.deaths.Load(), s.replaced[i].Load()
		err := s.get(random, i, object, s.floor[i][object].Load(), buf)
		var cut brokeOff
		switch r := &s.results; {
		case err == nil:
			r.right.Add(1)
			if object >= soakSmall {
				r.rightOfLarge.Add(1)
			}
		case errors.As(err, new(wrongAnswer)):
			s.t.Errorf("peer %d, object %d: %v", i, object, err)
		case life%2 == 0 || life != s.life[i].Load():
			r.atDeadPeer.Add(1)
			time.Sleep(2 * time.Millisecond) // not to spin against a closed port
		case wasBroken || s.broken.Load() || began.UnixNano() < s.changed.Load()+int64(3*time.Second):
			r.originDown.Add(1)
		case errors.As(err, &cut) && deaths != s.deaths.Load(): // by a sibling that died while it sent
			r.cutByDeath.Add(1)
		case cut.error != nil && (replaced%2 == 1 || replaced != s.replaced[i].Load()): // it had just begun, and lasts
			r.cutByReplacement.Add(1)
		case cut.error != nil && object >= soakSmall && cut.version != s.version[object].Load(): // nobody has its other slices any more
			r.cutByNewerVersion.Add(1)
		default:
			r.unexpected.add(fmt.Errorf("%s to %s, peer %d, object %d: %w; before: %v", began.Format(time.TimeOnly), time.Now().Format(time.TimeOnly), i, object, err, s.last.Load()))
		}
	}
}

// popular draws one of the small objects; the first ones are drawn most often.
func popular(random *rand.Rand) int {
	return int(float64(soakSmall) * random.Float64() * random.Float64())
}

// A wrongAnswer is an answer that must not be, whatever happened.
type wrongAnswer struct{ error }

// brokeOff says that an answer ended too early, and its client knows.
type brokeOff struct {
	error
	version int32
}

// get requests an object, or a part of it, and compares the answer with the version that its ETag says.
func (s *soak) get(random *rand.Rand, i, object int, floor int32, buf []byte) error {
	r, err := http.NewRequest(http.MethodGet, fmt.Sprintf("http://%s/%d", s.listen[i], object), nil)
	if err != nil {
		return err
	}
	r.Host = soakHost
	_, size := s.body(object, 0)
	first, last := int64(0), size-1
	if object >= soakSmall && random.IntN(4) > 0 {
		first = random.Int64N(size)
		last = min(last, first+random.Int64N(3<<20))
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", first, last))
	}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	switch {
	case answer.StatusCode == http.StatusOK:
		first, last = 0, size-1
	case answer.StatusCode != http.StatusPartialContent || r.Header.Get("Range") == "":
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 300))
		return fmt.Errorf("%s, %s: %s", answer.Status, answer.Header.Get("Cache-Status"), text)
	}
	version, err := strconv.Atoi(strings.Trim(answer.Header.Get("ETag"), `"`))
	if err != nil {
		return wrongAnswer{fmt.Errorf("ETag %q", answer.Header.Get("ETag"))}
	}
	if int32(version) < floor {
		return wrongAnswer{fmt.Errorf("version %d, though %d was promised: %v", version, floor, answer.Header)}
	}
	body, _ := s.body(object, version)
	if err = same(answer, body, first, last, buf); err != nil && !errors.As(err, new(wrongAnswer)) {
		return brokeOff{err, int32(version)}
	}
	return err
}

// same reads the bytes of an answer from first to last, and compares them with want.
func same(answer *http.Response, want io.ReaderAt, first, last int64, buf []byte) error {
	got, expected := buf[:len(buf)/2], buf[len(buf)/2:]
	for at := first; ; {
		n, err := answer.Body.Read(got)
		if at+int64(n) > last+1 {
			return wrongAnswer{fmt.Errorf("goes on after byte %d", last)}
		}
		want.ReadAt(expected[:n], at)
		if !bytes.Equal(got[:n], expected[:n]) {
			return wrongAnswer{fmt.Errorf("is wrong between bytes %d and %d of %d-%d: %v", at, at+int64(n), first, last, answer.Header)}
		}
		at += int64(n)
		switch {
		case err == io.EOF && at <= last:
			return wrongAnswer{fmt.Errorf("ends at byte %d of %d-%d", at, first, last)}
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("broke off at byte %d of %d-%d: %w (%s)", at, first, last, err, answer.Header.Get("Cache-Status"))
		}
	}
}

// body returns the body of a version of an object, and its length, which is that of all its versions.
func (s *soak) body(object, version int) (*io.SectionReader, int64) {
	size := int64(200 + object*7919%(24<<10))
	if object >= soakSmall {
		size = 9<<20 + int64(object)*4097
	}
	return origin.NewContent(fmt.Sprintf("%d %d", object, version), size), size
}

// ServeHTTP is the origin. A POST makes a new version.
func (s *soak) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	object, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
	switch {
	case s.broken.Load():
		panic(http.ErrAbortHandler)
	case err != nil || object >= len(s.version):
		http.NotFound(w, r)
		return
	case r.Method == http.MethodPost:
		io.WriteString(w, strconv.Itoa(int(s.version[object].Add(1))))
		return
	}
	version := int(s.version[object].Load())
	w.Header().Set("Cache-Control", "max-age=3600")
	w.Header().Set("ETag", fmt.Sprintf(`"%d"`, version))
	body, _ := s.body(object, version)
	http.ServeContent(w, r, "", time.Time{}, body)
}
