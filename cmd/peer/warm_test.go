package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var warmObjects = flag.Int("warm", 200_000, "objects that TestComesBackWarm starts with again")

// TestComesBackWarm kills a peer that holds 200,000 objects and restarts it: it has them all, and
// the log says how long that took.
func TestComesBackWarm(t *testing.T) {
	if !*long {
		t.Skip("takes two minutes: -long")
	}
	objects := *warmObjects
	s := newSite(t, objects, 300)
	dir := filepath.Join(t.TempDir(), "store")
	p := s.peer(t, "a", dir)
	began := time.Now()
	s.fill(t, p.listen, 0, objects)
	p.stored(t, objects)
	t.Logf("filled in %v", time.Since(began).Round(time.Millisecond))
	p.kill()

	asked := s.Requests()
	began = time.Now()
	p = s.peer(t, "a", dir)
	ready := time.Since(began)
	status, err := s.get(t.Context(), p.listen, object(objects/2))
	first := time.Since(began)
	if err != nil || !strings.Contains(status, "hit") {
		t.Fatalf("the first answer: %q, %v", status, err)
	}
	st := p.status()
	t.Logf("killed with %d objects, ready again after %v, the first hit after %v, %d MiB resident", objects,
		ready.Round(time.Millisecond), first.Round(time.Millisecond), resident(t, p.cmd.Process.Pid)>>20)
	if st.Store.Objects != objects || st.Store.Removed != 0 || st.Digest.Keys != objects {
		t.Errorf("the store %+v, the digest %+v", st.Store, st.Digest)
	}
	for i := 0; i < objects; i += 97 {
		if status, err := s.get(t.Context(), p.listen, object(i)); err != nil || !strings.Contains(status, "hit") {
			t.Fatalf("object %d: %q, %v", i, status, err)
		}
	}
	if n := s.Requests(); n != asked {
		t.Errorf("%d objects were fetched again", n-asked)
	}
}

// TestBodyOfAGigabyte passes 1 GiB from the origin to a client, and then to a sibling's client,
// through peers with a limit of 64 MiB of memory each.
func TestBodyOfAGigabyte(t *testing.T) {
	if !*long {
		t.Skip("takes half a minute: -long")
	}
	t.Setenv("GOMEMLIMIT", "64MiB")
	s := newSite(t, 2, 100)
	s.Sizes[object(1)] = 1 << 30
	args := func(name string, more ...string) []string {
		return append([]string{"run", "--name", name, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--gossip", "127.0.0.1:0",
			"--origin", s.url, "--store", filepath.Join(t.TempDir(), name), "--store-size", "5GiB", "--memory-size", "8MiB"}, more...)
	}
	a := spawn(t, args("a")...)
	b := spawn(t, args("b", "--join", a.gossip)...)
	defer func(was time.Duration) { client.Timeout = was }(client.Timeout)
	client.Timeout = 5 * time.Minute
	for _, step := range []struct {
		p    *process
		want string
	}{{a, "a; fwd=uri-miss"}, {a, "a; hit; ttl="}, {b, "a; hit"}, {b, "b; hit"}} {
		if step.p == b {
			eventually(t, time.Minute, "b knows what a holds", b.knows("a", 1))
		}
		began := time.Now()
		status, err := s.get(t.Context(), step.p.listen, object(1))
		if err != nil || !strings.Contains(status, step.want) {
			t.Fatalf("%s: %q, %v, want %s", step.p.name, status, err, step.want)
		}
		took := time.Since(began)
		step.p.stored(t, 1)
		size := resident(t, step.p.cmd.Process.Pid)
		t.Logf("%s, %s: 1 GiB in %v, %d MiB resident", step.p.name, step.want, took.Round(time.Millisecond), size>>20)
		if size > 160<<20 { // the program itself, and the runtime's 64 MiB
			t.Errorf("%s holds %d MiB for a body of 1 GiB", step.p.name, size>>20)
		}
	}
}

// resident returns the maximum of resident memory of a process.
func resident(t *testing.T, pid int) (bytes int64) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skipf("the size of a process is not told here: %v", err)
	}
	for line := range strings.Lines(string(text)) {
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &bytes); n == 1 {
			return bytes << 10
		}
	}
	return 0
}
