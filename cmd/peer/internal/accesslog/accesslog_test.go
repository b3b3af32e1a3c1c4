package accesslog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/conn"
	"github.com/summarycache/summarycache/cmd/peer/internal/proxy"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
	"github.com/summarycache/summarycache/gossip/rfc9111"
	"github.com/summarycache/summarycache/sim/cputime"
)

func event() proxy.Event {
	e := proxy.Event{Request: &http.Request{Method: "GET", RequestURI: "/a?b=\"c\"", Proto: "HTTP/1.1", Host: "shop.example",
		Header: http.Header{"User-Agent": {"ä\nb\xff"}}}, Client: "192.0.2.7", Trace: "4bf92f", Duration: 1500 * time.Microsecond}
	e.Status, e.Bytes, e.Outcome, e.Peer = 200, 5, engine.SiblingHit, "cache-2"
	e.Said = rfc9111.Status{Fwd: "uri-miss", Detail: "sibling"}
	return e
}

func open(t *testing.T, asJSON bool, to io.Writer) *Log {
	t.Helper()
	l, err := Open("-", asJSON, to, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLines(t *testing.T) {
	var b bytes.Buffer
	l := open(t, false, &b)
	l.Observe(event())
	l.Observe(proxy.Event{Request: &http.Request{Method: "POST", RequestURI: "/", Proto: "HTTP/1.0"}})
	l.Close()
	want := regexp.MustCompile(`^192\.0\.2\.7 - - \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] "GET /a\?b=\\"c\\" HTTP/1\.1" 200 5 "-" "ä\\x0ab\\xff" sibling-hit cache-2 0\.001500 4bf92f "fwd=uri-miss; detail=sibling"
- - - \[.*\] "POST / HTTP/1\.0" 0 0 "-" "-" none - 0\.000000 - "-"
$`)
	if !want.MatchString(b.String()) {
		t.Errorf("combined: %q", b.String())
	}
	b.Reset()
	l = open(t, true, &b)
	l.Observe(event())
	l.Close()
	var got struct {
		Time                                               time.Time
		Client, Method, Host, URI, Outcome, Sibling, Trace string
		UserAgent                                          string `json:"user_agent"`
		Status, Bytes                                      int
		Seconds                                            float64
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || got.URI != `/a?b="c"` || got.UserAgent != "ä\nb\ufffd" || got.Sibling != "cache-2" ||
		got.Status != 200 || got.Seconds != 0.0015 || got.Trace != "4bf92f" || got.Time.IsZero() {
		t.Errorf("JSON: %s = %+v, %v", b.Bytes(), got, err)
	}
}

// After Reopen a file that was moved away gets no more lines, and no line is lost.
func TestReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	l, err := Open(path, false, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	l.Observe(event())
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if err := l.Reopen(); err != nil {
		t.Fatal(err)
	}
	l.Observe(event())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, path + ".1"} {
		if text, err := os.ReadFile(name); err != nil || strings.Count(string(text), "\n") != 1 {
			t.Errorf("%s: %q, %v, want a line", name, text, err)
		}
	}
	if _, err := Open(filepath.Dir(path), false, nil, nil); err == nil {
		t.Error("a directory was opened")
	}
}

// stuck is a disk that accepts no writes until it is released.
type stuck struct{ let chan struct{} }

func (s stuck) Write(p []byte) (int, error) {
	<-s.let
	return len(p), nil
}

// A disk that accepts no writes causes lost lines, but delays no requests and fills no memory.
func TestStuckDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told bytes.Buffer
		disk := stuck{make(chan struct{})}
		l, err := Open("-", false, disk, slog.New(slog.NewTextHandler(&told, nil)))
		if err != nil {
			t.Fatal(err)
		}
		l.Observe(event())
		time.Sleep(2 * flushEvery)
		const many = 100_000
		for range many {
			l.Observe(event())
		}
		l.mu.Lock()
		held := len(l.lines)
		l.mu.Unlock()
		if held > maxWaiting+1000 {
			t.Errorf("%d bytes wait", held)
		}
		close(disk.let)
		l.Close()
		if !strings.Contains(told.String(), "lines of the access log are lost") {
			t.Errorf("the log says %q", told.String())
		}
	})
}

// TestLostOnce: the log counts each line that it lost once, and says nothing more when the disk works again.
func TestLostOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told bytes.Buffer
		disk := stuck{make(chan struct{})}
		l, err := Open("-", false, disk, slog.New(slog.NewTextHandler(&told, nil)))
		if err != nil {
			t.Fatal(err)
		}
		l.Observe(event())
		time.Sleep(2 * flushEvery)
		for range 100_000 {
			l.Observe(event())
		}
		l.mu.Lock()
		lost := l.lost
		l.mu.Unlock()
		close(disk.let)
		for range 10 {
			time.Sleep(2 * flushEvery)
			l.Observe(event())
		}
		l.Close()
		if got := regexp.MustCompile(`lines=(\d+)`).FindAllStringSubmatch(told.String(), -1); len(got) != 1 || got[0][1] != fmt.Sprint(lost) {
			t.Errorf("of %d lost lines the log says %q", lost, told.String())
		}
	})
}

func BenchmarkObserve(b *testing.B) {
	for name, asJSON := range map[string]bool{"combined": false, "json": true} {
		b.Run(name, func(b *testing.B) {
			l, err := Open("-", asJSON, io.Discard, slog.New(slog.DiscardHandler))
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			e := event()
			b.ReportAllocs()
			for b.Loop() {
				l.Observe(e)
			}
		})
	}
}

// BenchmarkHit requests a stored object over one connection, from peers with and without a log
// file, in turns of 50 hits, so that other load on the machine affects all of them alike. The times
// are CPU time, with that of the client.
func BenchmarkHit(b *testing.B) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		w.Write(make([]byte, 1<<10))
	}))
	defer origin.Close()
	base, _ := url.Parse(origin.URL)
	formats := []string{"none", "combined", "json"}
	hits, used := make([]func(), len(formats)), make([]time.Duration, len(formats))
	for i, format := range formats {
		c := proxy.Config{Settings: proxy.Settings{Origin: base}, Config: engine.Config{Name: "bench"}, Store: diskstore.Options{Dir: b.TempDir(), MaxBytes: 1 << 30, MemoryBytes: 64 << 20}, Observe: func(proxy.Event) {}} // as every peer has one
		if format != "none" {
			l, err := Open(filepath.Join(b.TempDir(), "access.log"), format == "json", nil, slog.New(slog.DiscardHandler))
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			c.Observe = l.Observe
		}
		h, err := proxy.New(c)
		if err != nil {
			b.Fatal(err)
		}
		defer h.Close()
		peer := httptest.NewUnstartedServer(h)
		peer.Config.ConnContext = conn.Context
		peer.Listener = conn.Listen(peer.Listener, time.Minute, nil)
		peer.Start()
		defer peer.Close()
		to, err := net.Dial("tcp", peer.Listener.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		defer to.Close()
		answers := bufio.NewReader(to)
		hits[i] = func() {
			io.WriteString(to, "GET /x HTTP/1.1\r\nHost: bench\r\nUser-Agent: bench/1.0 (an agent of usual length, for the sake of the log)\r\n\r\n")
			r, err := http.ReadResponse(answers, nil)
			if err != nil {
				b.Fatal(err)
			}
			io.Copy(io.Discard, r.Body)
		}
		hits[i]()
	}
	const turn = 50
	n := 0
	for ; b.Loop(); n++ {
		for i, hit := range hits {
			began := cputime.Used()
			for range turn {
				hit()
			}
			used[i] += cputime.Used() - began
		}
	}
	for i, format := range formats {
		b.ReportMetric(float64(used[i])/float64(n*turn), format+"-cpu-ns/hit")
	}
}
