//go:build linux && !race

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// inMemory starts a peer in a control group with so many MiB, or, where none can be made, with
// GOMEMLIMIT.
func inMemory(t *testing.T, mib int, args ...string) *process {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	group := fmt.Sprintf("peer-test-%d-%d", os.Getpid(), time.Now().UnixNano())
	cmd := exec.Command(binary, args...)
	for root, file := range map[string]string{"/sys/fs/cgroup": "memory.max", "/sys/fs/cgroup/memory": "memory.limit_in_bytes"} {
		dir := filepath.Join(root, group)
		if _, err := os.Stat(filepath.Join(root, "cgroup.procs")); err != nil || os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { os.Remove(dir) }) // after the process has ended
		if os.WriteFile(filepath.Join(dir, file), []byte(strconv.Itoa(mib<<20)), 0o644) == nil {
			cmd = exec.Command("sh", append([]string{"-c", `echo $$ >"$0" && exec "$@"`, filepath.Join(dir, "cgroup.procs"), binary}, args...)...)
			return spawnCommand(t, cmd)
		}
	}
	t.Logf("no control group can be made: GOMEMLIMIT")
	t.Setenv("GOMEMLIMIT", fmt.Sprintf("%dMiB", mib))
	return spawnCommand(t, cmd)
}

// memory returns the resident memory of p in bytes, now and at most since the last call of resetPeak.
func (p *process) memory() (now, peak int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) == 3 && (f[0] == "VmRSS:" || f[0] == "VmHWM:") {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			if f[0] == "VmRSS:" {
				now = n << 10
			} else {
				peak = n << 10
			}
		}
	}
	return now, peak
}

// objectsOf is an origin whose objects are of the length that their path begins with.
func objectsOf(t *testing.T, more func(http.Header, *http.Request)) *httptest.Server {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(strings.Split(r.URL.Path, "/")[1])
		w.Header().Set("Cache-Control", "max-age=3600")
		w.Header().Set("Content-Length", strconv.Itoa(n))
		if more != nil {
			more(w.Header(), r)
		}
		w.Write(make([]byte, n))
	}))
	t.Cleanup(origin.Close)
	return origin
}

// fromAddress connects to an address from the i-th address of loopback.
func fromAddress(t *testing.T, addr string, i int) net.Conn {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, byte(1+i>>8), byte(i))}}
	c, err := d.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// idle sends a request on a connection and reads the answer.
func idle(c net.Conn, host, path string) error {
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, host)
	c.SetDeadline(time.Now().Add(time.Minute))
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err
	}
	if io.Copy(io.Discard, resp.Body); resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s", resp.Status)
	}
	return nil
}

var reverse = []string{"run", "--name", "p1", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--gossip", "127.0.0.1:0"}

// keepAlive sends requests for paths over a few connections of one address, one after another on each.
func keepAlive(t *testing.T, addr string, from, connections, n int, path func(i int) string) (failed int64) {
	t.Helper()
	var bad, next atomic.Int64
	var all sync.WaitGroup
	for range connections {
		c := fromAddress(t, addr, from)
		all.Go(func() {
			in := bufio.NewReader(c)
			c.SetDeadline(time.Now().Add(5 * time.Minute))
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path(int(i)), addr)
				resp, err := http.ReadResponse(in, nil)
				if err != nil {
					bad.Add(1)
					return
				}
				if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
					bad.Add(1)
				}
			}
		})
	}
	all.Wait()
	return bad.Load()
}

// TestObjectsInLittleMemory checks what many small objects take in memory at the default --memory-size
// of 64 MiB: their index, and after hits of most of them the popular ones.
func TestObjectsInLittleMemory(t *testing.T) {
	if !*long {
		t.Skip("takes half a minute: use -long")
	}
	const objects = 100_000
	origin := objectsOf(t, nil)
	p := spawn(t, append(reverse, "--origin", origin.URL, "--store", t.TempDir())...)
	path := func(i int) string { return fmt.Sprintf("/1024/object/%07d", i) }
	rest := func() int64 {
		time.Sleep(4 * time.Second)
		now, _ := p.memory()
		return now
	}
	if keepAlive(t, p.listen, 1, 4, 1000, func(i int) string { return "/1024/warm" }) > 0 {
		t.Fatal("requests failed")
	}
	before := rest()
	if n := keepAlive(t, p.listen, 1, 8, objects, path); n > 0 {
		t.Fatalf("%d requests failed", n)
	}
	filled := rest()
	cpu := p.cpu()
	step := 7919 // prime, so that all differ
	if n := keepAlive(t, p.listen, 1, 8, objects*6/10, func(i int) string { return path(i * step % objects) }); n > 0 {
		t.Fatalf("%d hits failed", n)
	}
	cpu = p.cpu() - cpu
	_, peak := p.memory() // with garbage
	hits := rest()
	each := (filled - before) / int64(objects)
	t.Logf("resident: %.1f MB before, %.1f with %d objects (%d B each), %.1f after %d hits (%v each), %.1f at most; %+v",
		float64(before)/1e6, float64(filled)/1e6, objects, each, float64(hits)/1e6, objects*6/10, cpu/time.Duration(objects*6/10), float64(peak)/1e6, p.status().Store.MemoryBytes)
	if each > 400 || hits > 130e6 {
		t.Errorf("%d bytes an object, want 400; %d MB after the hits, want 130", each, hits/1e6)
	}
}

// cpu returns the processor time that p has used.
func (p *process) cpu() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')'):]))
	user, _ := strconv.Atoi(f[12])
	system, _ := strconv.Atoi(f[13])
	return time.Duration(user+system) * 10 * time.Millisecond
}
