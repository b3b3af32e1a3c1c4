package main

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSwitches counts how often threads of a peer fall asleep that has little to do: at rest, and for a request after a
// pause. Its limits are above what a quiet and a busy machine showed, and one more for each hit is beyond.
func TestSwitches(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector has threads of its own")
	}
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		io.WriteString(w, "body")
	}))
	defer origin.Close()
	p := spawn(t, local(t, "a", "--origin", origin.URL)...)
	c, err := net.Dial("tcp", p.listen)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in := bufio.NewReader(c)
	get := func(i int) {
		t.Helper()
		if _, err := fmt.Fprintf(c, "GET /%d HTTP/1.1\r\nHost: x\r\n\r\n", i); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(answer.Body); err != nil || string(body) != "body" {
			t.Fatalf("/%d: %s, %q, %v", i, answer.Status, body, err)
		}
	}
	for i := range 20 {
		get(-i)
	}
	time.Sleep(5 * time.Second) // what begins has ended
	const many, pause = 150, 20 * time.Millisecond
	rest := 0.0 // a second
	for _, row := range []struct {
		name  string
		do    func(int)
		limit float64 // a second, or a request beside rest
	}{
		{"rest", func(int) {}, 20},
		{"a hit", func(int) { get(0) }, 2},
		{"a miss", func(i int) { get(1 + i) }, 7},
	} {
		n := math.Inf(1)
		for try := 0; try < 3 && n > row.limit; try++ { // what else runs can only add some
			before, began := switches(t, p), time.Now()
			for i := range many {
				row.do(try*many + i)
				time.Sleep(pause)
			}
			count, took := float64(switches(t, p)-before), time.Since(began).Seconds()
			if row.name == "rest" {
				rest = min(n, count/took)
				n = rest
			} else {
				n = min(n, (count-rest*took)/many)
			}
		}
		t.Logf("%s: %.2f switches", row.name, n)
		if n > row.limit {
			t.Errorf("%s: %.2f switches, want at most %v", row.name, n, row.limit)
		}
	}
}

// switches counts those that threads of a process wanted: they wait for something.
func switches(t *testing.T, p *process) (n int) {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var k int
			if _, err := fmt.Sscanf(line, "voluntary_ctxt_switches: %d", &k); err == nil {
				n += k
			}
		}
	}
	return n
}
