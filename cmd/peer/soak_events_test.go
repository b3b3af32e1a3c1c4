//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
)

const soakHost = "soak.test"

func newSoak(t *testing.T) *soak {
	t.Setenv("GOMEMLIMIT", fmt.Sprint(soakMemory))
	s := &soak{t: t, random: rand.New(rand.NewPCG(*soakSeed, 64)), dir: t.TempDir(), happened: make(map[string]int)}
	s.write("secret", "not known to strangers, and long enough\n")
	s.move()
	t.Cleanup(func() { s.origin.Close() })
	if os.Geteuid() == 0 {
		disk := s.store(0)
		if err := errors.Join(os.Mkdir(disk, 0o700), syscall.Mount("none", disk, "tmpfs", 0, fmt.Sprintf("size=%d", soakDisk))); err != nil {
			t.Fatalf("cannot mount a small disk: %v", err)
		}
		t.Cleanup(func() { syscall.Unmount(disk, syscall.MNT_DETACH) })
	}
	return s
}

// store returns the directory of a peer's store, the disk of the first.
func (s *soak) store(i int) string { return filepath.Join(s.dir, strconv.Itoa(i)) }

// write makes a file at once, as a peer may read it at any time.
func (s *soak) write(name, text string) {
	s.t.Helper()
	file := filepath.Join(s.dir, name)
	if err := errors.Join(os.WriteFile(file+".new", []byte(text), 0o600), os.Rename(file+".new", file)); err != nil {
		s.t.Fatal(err)
	}
}

// start starts a peer. A restarted peer has the same addresses. Their ports are below those that the system gives to
// other processes, which may come while the peer is dead.
func (s *soak) start(i int) {
	at := func(n int) string { return fmt.Sprintf("127.0.0.1:%d", 10_000+os.Getpid()%1_000*20+3*i+n) }
	keep := "all"
	if i == soakPeers-1 {
		keep = "none"
	}
	args := []string{"run", "--config", filepath.Join(s.dir, "peer.yaml"), "--name", fmt.Sprintf("p%d", i), "--listen", at(0), "--admin", at(1), "--gossip", at(2),
		"--zone", string('a' + rune(i%2)), "--secret-file", filepath.Join(s.dir, "secret"), "--keep-digests", keep, "--store", filepath.Join(s.store(i), "store"),
		"--store-size", fmt.Sprintf("%dB", soakStore), "--memory-size", "4MiB", "--log-level", "error", "--profiles", "on", "--drain", "30s"}
	for k, p := range s.peers {
		if p != nil && k != i {
			args = append(args, "--join", p.gossip)
		}
	}
	s.peers[i] = spawn(s.t, args...)
	s.listen[i] = at(0)
	s.life[i].Add(1)
}

// stop ends a peer like an operator.
func (s *soak) stop(i int) {
	if code := s.peers[i].stop(); code != 0 {
		s.t.Errorf("%s ended with %d\n%s", s.peers[i].name, code, s.peers[i].stderr.String())
	}
}

// happen has something happen every second or so until ctx ends. In the second quarter of the time the disk of the first
// peer is full besides, and at the end of that the origin is broken for a while.
func (s *soak) happen(ctx context.Context) {
	began, full, mended, failed := time.Now(), "", false, int64(0)
	for sleep(ctx, time.Duration(300+s.random.IntN(1500))*time.Millisecond) {
		switch passed := time.Since(began); {
		case full == "" && passed > *soakFor/4 && os.Geteuid() == 0:
			full = s.fillDisk()
		case !mended && passed > *soakFor/2:
			mended = true
			if err := os.RemoveAll(filepath.Join(s.store(0), "filler")); err != nil {
				s.t.Error(err)
			}
			s.broken.Store(true)
			sleep(ctx, min(*soakFor/8, 10*time.Second))
			s.changed.Store(time.Now().UnixNano())
			s.broken.Store(false)
		}
		if full != "" && failed == 0 { // a replacement counts from 0
			failed = int64(s.peers[0].status().Store.WriteErrors)
		}
		s.event(ctx)
	}
	if full != "" && failed == 0 {
		s.t.Error("the disk was full, and no write failed")
	}
}

// event does one thing to one peer, or to the origin.
func (s *soak) event(ctx context.Context) {
	i := s.random.IntN(soakPeers)
	dies := 1 + s.random.IntN(soakPeers-1)
	p := s.peers[i]
	what, err := "", error(nil)
	now := func(did string) {
		what = did
		s.last.Store(fmt.Sprintf("%s p%d or p%d %s", time.Now().Format(time.TimeOnly), i, dies, did))
	}
	switch k := s.random.IntN(10); {
	case k < 4:
		now("killed")
		s.deaths.Add(1)
		s.life[dies].Add(1)
		s.peers[dies].kill()
		sleep(ctx, time.Duration(s.random.IntN(2000))*time.Millisecond)
		s.start(dies)
	case k < 5:
		now("stopped")
		s.deaths.Add(1)
		s.life[dies].Add(1)
		s.stop(dies)
		s.start(dies)
	case k < 7:
		now("replaced")
		s.replaced[i].Add(1)
		err = run(s.t.Context(), []string{"replace", "--admin", p.admin}, io.Discard, io.Discard)
		s.replaced[i].Add(1)
	case k < 8:
		now("reloaded")
		_, err = admin.Client(p.started.admin).Reload(s.t.Context(), admin.ReloadRequest{}, "")
	default:
		now("moved")
		s.move()
	}
	s.happened[what]++
	if err != nil {
		s.t.Errorf("%s was not %s: %v", p.name, what, err)
	}
}

// move starts the origin at another port, has all peers know, and ends the former one in the middle of what it sends.
func (s *soak) move() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	was := s.origin
	s.origin = &http.Server{Handler: s}
	go s.origin.Serve(l)
	s.write("peer.yaml", fmt.Sprintf("sites:\n  - hosts: [%s]\n    origins: http://%s\n", soakHost, l.Addr()))
	if was == nil {
		return
	}
	for _, p := range s.peers {
		if _, err := admin.Client(p.started.admin).Reload(s.t.Context(), admin.ReloadRequest{}, ""); err != nil {
			s.t.Errorf("reload of %s: %v", p.name, err)
		}
	}
	s.changed.Store(time.Now().UnixNano())
	was.Close()
}

// fillDisk fills the first peer's disk.
func (s *soak) fillDisk() (path string) {
	path = filepath.Join(s.store(0), "filler")
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

// changeObjects makes new versions of objects, and purges them at any peer, or writes them there, until ctx ends. From
// then on no older version may come from a peer that has confirmed it, and a minute later from no other.
func (s *soak) changeObjects(ctx context.Context) {
	random := rand.New(rand.NewPCG(*soakSeed, 65))
	for sleep(ctx, time.Duration(random.IntN(200))*time.Millisecond) {
		i, object := random.IntN(soakPeers), popular(random)
		if random.IntN(200) == 0 {
			object = soakSmall + random.IntN(soakLarge)
		}
		life := s.life[i].Load()
		if life%2 == 0 {
			continue
		}
		change := s.purge
		if random.IntN(3) == 0 {
			change = s.post
		}
		version, confirmed, err := change(ctx, i, object)
		if err != nil || life != s.life[i].Load() {
			continue // it may have died before it told anybody
		}
		for k, now := range confirmed {
			promise := func() { raise(&s.floor[k][object], version) }
			if now {
				promise()
			} else {
				time.AfterFunc(soakLate, promise)
			}
		}
	}
}

// purge makes a new version and purges its URL. It returns the version, and which peers have confirmed that.
func (s *soak) purge(ctx context.Context, i, object int) (version int32, confirmed [soakPeers]bool, err error) {
	version = s.version[object].Add(1)
	order := admin.PurgeRequest{URL: fmt.Sprintf("http://%s/%d", soakHost, object), Everywhere: true}
	report, err := admin.Client(filepath.Join(s.store(i), "store", "admin.sock")).Purge(ctx, order, "")
	for _, p := range report.Peers {
		if k, err := strconv.Atoi(strings.TrimPrefix(p.Peer, "p")); err == nil && p.Error == "" {
			confirmed[k] = true
		}
	}
	return version, confirmed, err
}

// post writes a new version through a peer, and returns it as purge does.
func (s *soak) post(ctx context.Context, i, object int) (version int32, confirmed [soakPeers]bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://%s/%d", s.listen[i], object), http.NoBody)
	if err != nil {
		return 0, confirmed, err
	}
	r.Host = soakHost
	answer, err := client.Do(r)
	if err != nil {
		return 0, confirmed, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return 0, confirmed, fmt.Errorf("%s, %w", answer.Status, err)
	}
	n, err := strconv.Atoi(string(text))
	confirmed[i] = true
	return int32(n), confirmed, err
}

// raise sets a to at least v.
func raise(a *atomic.Int32, v int32) {
	for was := a.Load(); was < v && !a.CompareAndSwap(was, v); was = a.Load() {
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
