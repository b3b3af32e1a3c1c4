package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
)

// A peer that is stopped finishes its requests, leaves the cluster, and causes no errors elsewhere.
func TestGracefulStop(t *testing.T) {
	half, rest := make(chan struct{}), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		io.WriteString(w, "first ")
		w.(http.Flusher).Flush()
		close(half)
		<-rest
		io.WriteString(w, "second")
	}))
	defer slow.Close()
	release := sync.OnceFunc(func() { close(rest) })
	defer release() // or Close waits
	other := inProcess(t, local(t, "other"))

	ctx, stop := context.WithCancel(t.Context())
	var out, errs lockedBuffer
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, local(t, "stopped", "--origin", slow.URL, "--join", other.gossip, "--drain", "20s"), &out, &errs)
	}()
	var peer started
	eventually(t, time.Minute, "the peer is up", func() (up bool) { peer, up = parseStarted(out.String()); return up })
	// A peer says farewell to those that it knows, and those that know it hear it.
	knows := func(at, name string) bool {
		s, err := admin.Client(at).Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(s.Members) == 1 && s.Members[0].Name == name && s.Members[0].State == "alive"
	}
	eventually(t, time.Minute, "they know each other", func() bool { return knows(other.admin, "stopped") && knows(peer.admin, "other") })

	answer, err := http.Get("http://" + peer.listen + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	<-half
	stop()
	eventually(t, time.Minute, "the peer says that it is draining", func() bool {
		ready, err := http.Get("http://" + peer.admin + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		ready.Body.Close()
		return ready.StatusCode == http.StatusServiceUnavailable
	})
	var seen []admin.Member
	defer func() { t.Logf("the other peer knows %+v", seen) }()
	eventually(t, time.Minute, "the other peer knows that it left", func() bool {
		s, err := admin.Client(other.admin).Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		seen = s.Members
		return len(seen) == 1 && seen[0].State == "left"
	})
	select {
	case err := <-ended:
		t.Fatalf("the peer ended with a request under way: %v", err)
	default:
	}
	release()
	body, err := io.ReadAll(answer.Body)
	if err != nil || string(body) != "first second" {
		t.Errorf("the request under way got %q, %v", body, err)
	}
	if err := <-ended; err != nil {
		t.Errorf("peer run = %v\n%s", err, errs.String())
	}
}

// A peer whose listening socket is the service manager's is restarted again and again: no client is
// refused, and none waits for long.
func TestRestartRefusesNobody(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("sockets are passed on by descriptors")
	}
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		io.WriteString(w, "body")
	}))
	defer origin.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	socket, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := local(t, "a", "--origin", origin.URL)
	start := func() *process {
		c := exec.Command("sh", append([]string{"-c", `LISTEN_FDS=1 LISTEN_FDNAMES=listen LISTEN_PID=$$ exec "$0" "$@"`, binary}, args...)...)
		c.ExtraFiles = []*os.File{socket}
		return spawnCommand(t, c)
	}
	p := start()
	if p.listen != l.Addr().String() {
		t.Fatalf("the peer listens at %s, and its socket is %s", p.listen, l.Addr())
	}
	requests, rest := longestWait(t, l.Addr().String())
	for range restarts {
		n := requests()
		eventually(t, time.Minute, "requests are answered", func() bool { return requests() >= n+200 })
		if code := p.stop(); code != 0 {
			t.Errorf("the peer ended with %d\n%s", code, p.stderr.String())
		}
		p = start()
	}
	longest := rest()
	t.Logf("%d requests over %d restarts, the longest took %v", requests(), restarts, longest)
}

const restarts = 5

// longestWait sends requests, each on a connection of its own, until rest is called, which returns how long the longest
// took. All must be answered.
func longestWait(t *testing.T, addr string) (requests func() int64, rest func() time.Duration) {
	var clients sync.WaitGroup
	var count, longest atomic.Int64
	done := make(chan struct{})
	for range 4 {
		clients.Go(func() {
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				since := time.Now()
				resp, err := client.Get(fmt.Sprintf("http://%s/%d", addr, i%20))
				if err != nil {
					t.Errorf("request %d: %v", i, err)
					continue
				}
				if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "body" {
					t.Errorf("request %d: %s %q, %v", i, resp.Status, body, err)
				}
				resp.Body.Close()
				count.Add(1)
				for was := longest.Load(); int64(time.Since(since)) > was && !longest.CompareAndSwap(was, int64(time.Since(since))); was = longest.Load() {
				}
			}
		})
	}
	return count.Load, func() time.Duration {
		close(done)
		clients.Wait()
		return time.Duration(longest.Load())
	}
}
