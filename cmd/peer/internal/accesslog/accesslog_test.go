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
	"github.com/summarycache/summarycache/sim/workload"
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
	l.Observe(proxy.Event{Client: "192.0.2.7", Request: &http.Request{}, Result: engine.Result{Status: 400}})
	l.Close()
	want := regexp.MustCompile(`^192\.0\.2\.7 - - \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] "GET /a\?b=\\"c\\" HTTP/1\.1" 200 5 "-" "ä\\x0ab\\xff" sibling-hit cache-2 0\.001500 4bf92f "fwd=uri-miss; detail=sibling"
- - - \[.*\] "POST / HTTP/1\.0" 0 0 "-" "-" none - 0\.000000 - "-"
192\.0\.2\.7 - - \[.*\] "-" 400 0 "-" "-" none - 0\.000000 - "-"
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
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || got.URI != `/a?b="c"` || got.UserAgent != "ä\nb%FF" || got.Sibling != "cache-2" ||
		got.Status != 200 || got.Seconds != 0.0015 || got.Trace != "4bf92f" || got.Time.IsZero() {
		t.Errorf("JSON: %s = %+v, %v", b.Bytes(), got, err)
	}
}

// FuzzRoundTrip: what a line says of a request can be read from it, whatever a client sent.
func FuzzRoundTrip(f *testing.F) {
	for _, s := range []string{"/", `/search?q="tea"`, `/x\\" 200 999 "`, "/ä\xff\x80\n%zz", "/a HTTP/1.1", `","status":200,"x":"`, "\x16\x03\x01"} {
		f.Add("GET", s, s, 200)
		f.Add("GET", s, s, 404)
		f.Add(s, "/", s, 200)
	}
	f.Add("GET", `/x\\" 200 999 "`, `/x\\9 `, 404) // it has as many quotes as the other lines
	f.Fuzz(func(t *testing.T, method, uri, text string, status int) {
		uri = strings.Trim(uri, " ") // a target has no blanks
		e := event()
		e.Client, e.Request.Host, e.Request.Header = "192.0.2.9", "shop.example", http.Header{"Referer": {text}, "User-Agent": {text}}
		e.Request.Method, e.Request.RequestURI, e.Status = method, uri, status
		want := method == "GET" && status >= 200 && status < 400 && strings.HasPrefix(uri, "/")
		for _, asJSON := range []bool{false, true} {
			var b bytes.Buffer
			l := open(t, asJSON, &b)
			for range 3 {
				l.Observe(event())
			}
			l.Observe(e)
			l.Close()
			got, err := workload.Read("log", &b, workload.Options{})
			if err != nil || len(got.Requests) < 3 {
				t.Fatalf("Read(%q) = %+v, %v", b.Bytes(), got, err)
			}
			if len(got.Requests) == 4 != want && !(want && strings.Contains(got.Summary(), "read in two ways")) {
				t.Fatalf("%s %q, status %d: %s; want it to count: %v", method, uri, status, got.Summary(), want)
			}
			if len(got.Requests) < 4 {
				continue
			}
			r, key := got.Requests[3], percent(uri)
			if asJSON {
				key = "shop.example" + key
			}
			if r.Client != e.Client || r.Key != key || r.Size != e.Bytes && status == 200 {
				t.Errorf("%q is read as %+v, want key %s", uri, r, key)
			}
		}
	})
}

// percent escapes bytes that URLs cannot have, and % where it is no escape.
func percent(uri string) string {
	return regexp.MustCompile(`%[0-9A-Fa-f]{2}|(?s:.)`).ReplaceAllStringFunc(uri, func(s string) string {
		if len(s) == 3 && s[0] == '%' || len(s) == 1 && s[0] > ' ' && s[0] < 0x7f && s != `"` && s != "%" {
			return s
		}
		return strings.ToUpper(regexp.MustCompile(`..`).ReplaceAllString(hexOf(s), "%$0"))
	})
}

func hexOf(s string) string { return fmt.Sprintf("%x", s) }

// A line of JSON has the fields of which something is known, and no others.
func TestFields(t *testing.T) {
	bare := func(change func(*proxy.Event)) proxy.Event {
		e := proxy.Event{Request: &http.Request{Method: "GET"}}
		change(&e)
		return e
	}
	for name, tt := range map[string]struct {
		change func(*proxy.Event)
		more   string // fields besides those of every line
	}{
		"nothing":       {func(e *proxy.Event) {}, ""},
		"a reason":      {func(e *proxy.Event) { e.Said.Fwd = "stale" }, "cache_status"},
		"a detail":      {func(e *proxy.Event) { e.Said.Detail = "private" }, "cache_status"},
		"a hit":         {func(e *proxy.Event) { e.Said.Hit = true }, ""},
		"a stale one":   {func(e *proxy.Event) { e.Stale = true }, "stale"},
		"a broken one":  {func(e *proxy.Event) { e.Broken = true }, "broken"},
		"a client":      {func(e *proxy.Event) { e.Client = "192.0.2.7" }, "client"},
		"a host":        {func(e *proxy.Event) { e.Request.Host = "a.test" }, "host"},
		"a sibling":     {func(e *proxy.Event) { e.Peer = "p2" }, "sibling"},
		"a trace":       {func(e *proxy.Event) { e.Trace = "4bf92f" }, "trace"},
		"where it came": {func(e *proxy.Event) { e.Request.Header = http.Header{"Referer": {"x"}} }, "referer"},
	} {
		var b bytes.Buffer
		l := open(t, true, &b)
		l.Observe(bare(tt.change))
		l.Close()
		var got map[string]any
		if err := json.Unmarshal(b.Bytes(), &got); err != nil {
			t.Errorf("%s: %s: %v", name, b.Bytes(), err)
		}
		for _, always := range []string{"time", "method", "outcome", "status", "bytes", "seconds"} {
			if _, ok := got[always]; !ok {
				t.Errorf("%s: %s has no %s", name, b.Bytes(), always)
			}
			delete(got, always)
		}
		if _, ok := got[tt.more]; len(got) > 1 || ok != (tt.more != "") || len(got) == 1 && !ok {
			t.Errorf("%s: besides, %s has %v, want %q", name, b.Bytes(), got, tt.more)
		}
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

// Close closes the file, and never stdout, which others write to.
func TestCloseClosesItsFile(t *testing.T) {
	for _, path := range []string{"-", filepath.Join(t.TempDir(), "access.log")} {
		stdout, err := os.Create(filepath.Join(t.TempDir(), "stdout"))
		if err != nil {
			t.Fatal(err)
		}
		defer stdout.Close()
		l, err := Open(path, false, stdout, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		f := l.to.(*os.File)
		if err := l.Close(); err != nil {
			t.Errorf("%s: Close() = %v", path, err)
		}
		if _, err := f.Stat(); (err == nil) != (path == "-") {
			t.Errorf("%s: after Close(), Stat() of what was written to = %v", path, err)
		}
	}
}

// What cannot be written is lost, and the log says why.
func TestCannotWrite(t *testing.T) {
	var log bytes.Buffer
	stdout, err := os.Create(filepath.Join(t.TempDir(), "stdout"))
	if err != nil {
		t.Fatal(err)
	}
	stdout.Close()
	l, err := Open("-", false, stdout, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	l.Observe(event())
	l.Close()
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `msg="cannot write the access log" err="write `) {
		t.Errorf("the log has %q, want one line with the error", got)
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

// A disk that hangs holds up neither a reload nor the end of the process, and the file is opened once it goes on.
func TestReopenOnAStuckDisk(t *testing.T) {
	t.Parallel()
	l, err := Open(filepath.Join(t.TempDir(), "access.log"), false, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	disk := stuck{make(chan struct{})}
	l.written.Lock()
	l.to.(*os.File).Close()
	l.to = disk
	l.written.Unlock()
	l.Observe(event())
	began := time.Now()
	for range 3 {
		if err := l.Reopen(); err == nil || !strings.Contains(err.Error(), "hangs") {
			t.Errorf("Reopen() = %v", err)
		}
	}
	if took := time.Since(began); took < reopenWait || took > time.Minute {
		t.Errorf("three calls took %v", took)
	}
	close(disk.let)
	for end := time.Now().Add(time.Minute); l.Reopen() != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it still hangs when the disk goes on")
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
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

// A password in the URL of a request is in no line.
func TestNoPasswords(t *testing.T) {
	for in, want := range map[string]string{
		"http://u:secret@shop.example/a@b?c=d@e": "http://shop.example/a@b?c=d@e",
		"http://u:sec@ret@shop.example?x":        "http://shop.example?x",
		"http://secret@shop.example":             "http://shop.example",
		"/a@b":                                   "/a@b",
	} {
		for _, asJSON := range []bool{false, true} {
			e := event()
			e.Request.RequestURI = in
			e.Request.URL, _ = url.Parse(in)
			var b strings.Builder
			l := open(t, asJSON, &b)
			l.Observe(e)
			l.Close()
			if line := b.String(); strings.Contains(line, "secret") || !strings.Contains(line, want+" ") && !strings.Contains(line, want+`"`) {
				t.Errorf("%s: %s", in, line)
			}
		}
	}
}
