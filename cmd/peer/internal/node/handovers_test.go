package node

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime/metrics"
	"strconv"
	"strings"
	"testing"
)

// TestHandOvers counts what a request costs besides its work: goroutines that are started, each of which wakes a thread where the
// peer has little to do, and reads and writes of any file and socket. A growth by a tenth fails. Client and origin are in this
// process, and take six of the calls, for a hit three.
func TestHandOvers(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector has goroutines of its own")
	}
	if _, err := os.Stat("/proc/self/io"); err != nil {
		t.Skip("needs Linux: ", err)
	}
	base, err := url.Parse("http://" + shortOrigin(t))
	if err != nil {
		t.Fatal(err)
	}
	cfg := local(t, filepath.Join(t.TempDir(), "a"))
	cfg.Origin, cfg.Objects = base, 100_000
	n := start(t, cfg, nil)
	c, err := net.Dial("tcp", n.Addresses().Listen)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in := bufio.NewReader(c)
	get := func(name string, i int) {
		if _, err := fmt.Fprintf(c, "GET /%s%d HTTP/1.1\r\nHost: x\r\n\r\n", name, i); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK || len(body) != 2 {
			t.Fatalf("/%s%d: %s, %q, %v", name, i, answer.Status, body, err)
		}
	}
	for i := range 50 { // the first ones make pools, connections and hints
		get("first", i)
	}
	const many = 4000
	for _, row := range []struct {
		name           string
		same           bool
		started, calls float64 // a request
	}{
		{name: "a miss", calls: 13.5},
		{name: "a hit", same: true, calls: 7},
	} {
		get("x", 0)
		started, calls := counted(t)
		for i := range many {
			if row.same {
				i = 0
			}
			get("x", i)
		}
		startedNow, callsNow := counted(t)
		for _, got := range []struct {
			what     string
			n, limit float64
		}{
			{"goroutines started", (startedNow - started) / many, row.started},
			{"reads and writes", (callsNow - calls) / many, row.calls},
		} {
			t.Logf("%s: %.2f %s", row.name, got.n, got.what)
			if got.n > 1.1*got.limit+0.05 {
				t.Errorf("%s: %.2f %s, want %.1f", row.name, got.n, got.what, got.limit)
			}
		}
	}
}

// counted returns how many goroutines this process has started, and how many calls of the system it has made that read or write.
func counted(t *testing.T) (started, calls float64) {
	m := []metrics.Sample{{Name: "/sched/goroutines-created:goroutines"}}
	metrics.Read(m)
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if name, n, _ := strings.Cut(line, ":"); name == "syscr" || name == "syscw" {
			k, err := strconv.ParseFloat(strings.TrimSpace(n), 64)
			if err != nil {
				t.Fatal(err)
			}
			calls += k
		}
	}
	return float64(m[0].Value.Uint64()), calls
}

// shortOrigin answers every request on a connection by two bytes.
func shortOrigin(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				buf := make([]byte, 4<<10)
				for {
					n, err := c.Read(buf)
					if n == 0 || err != nil {
						return
					}
					io.WriteString(c, "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 2\r\n\r\nok")
				}
			}()
		}
	}()
	return l.Addr().String()
}
