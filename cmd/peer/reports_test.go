//go:build unix

package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

var reportsPage = flag.String("reports-page", "", "write REPORTS.md to this file; without it, the page that there is must say the same")

// A report is what a user of another program told, and a scene that would show the same here.
type report struct {
	area, of, symptom string
	scene             func(s *scene)
	result            string // what came of it
}

// A scene is an origin, scripted for one URL, with two peers before it that are joined.
type scene struct {
	*testing.T
	path   string
	peers  [2]started
	origin *reportOrigin
}

// A reportOrigin has answers for URLs. It is shared by all scenes.
type reportOrigin struct {
	url string
	mu  sync.Mutex
	of  map[string]func(n int, r *http.Request, c net.Conn) string
	got map[string][]*http.Request
}

func newReportOrigin(t *testing.T) *reportOrigin {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	o := &reportOrigin{url: "http://" + l.Addr().String(), got: make(map[string][]*http.Request)}
	o.of = make(map[string]func(int, *http.Request, net.Conn) string)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go o.serve(c)
		}
	}()
	return o
}

func (o *reportOrigin) serve(c net.Conn) {
	defer c.Close()
	for in := bufio.NewReader(c); ; {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		path, _, _ := strings.Cut(r.URL.Path[1:], "/")
		refused := r.Method == http.MethodPut && r.Header.Get("Expect") != "" // before its body has come
		if !refused {
			if r.Header.Get("Expect") != "" {
				io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n")
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		o.mu.Lock()
		answer, n := o.of[path], len(o.got[path])
		o.got[path] = append(o.got[path], r)
		o.mu.Unlock()
		text := "404"
		if answer != nil {
			text = answer(n, r, c)
		}
		if text == "" { // it wrote for itself
			return
		}
		if _, err := io.WriteString(c, wireText(text, r.Method)); err != nil {
			return
		}
	}
}

// wireText returns an answer as it is sent: "200|Cache-Control: max-age=60||body" stands for the status, fields, and
// what follows an empty one. Date and Content-Length are added where the text has none.
func wireText(text, method string) string {
	header, body, _ := strings.Cut(text, "||")
	lines := strings.Split(header, "|")
	out := "HTTP/1.1 " + lines[0] + " X\r\n"
	if !strings.Contains(header, "|Date:") {
		out += "Date: " + time.Now().UTC().Format(http.TimeFormat) + "\r\n"
	}
	if status := lines[0]; !strings.Contains(header, "|Content-Length:") && !strings.Contains(header, "|Transfer-Encoding:") && status != "204" && status != "304" {
		out += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	for _, field := range lines[1:] {
		out += field + "\r\n"
	}
	if method == http.MethodHead || lines[0] == "204" || lines[0] == "304" {
		body = ""
	}
	return out + "\r\n" + body
}

// answers has the origin give these answers for the scene's URL, in turn, the last one for all further requests.
func (s *scene) answers(texts ...string) {
	s.answer(func(n int, r *http.Request) string { return texts[min(n, len(texts)-1)] })
}

func (s *scene) answer(f func(n int, r *http.Request) string) {
	s.write(func(n int, r *http.Request, _ net.Conn) string { return f(n, r) })
}

// write has the origin call f for each request, which returns an answer, or "" if it wrote one itself.
func (s *scene) write(f func(n int, r *http.Request, c net.Conn) string) {
	s.origin.mu.Lock()
	defer s.origin.mu.Unlock()
	s.origin.of[s.path] = f
}

// asked returns the requests that the origin got.
func (s *scene) asked() []*http.Request {
	s.origin.mu.Lock()
	defer s.origin.mu.Unlock()
	return s.origin.got[s.path]
}

// A told answer is what a client was told.
type told struct {
	s      *scene
	status int
	header http.Header
	body   string
	err    error // the body did not come whole
}

// get asks the first peer, with fields such as "Range: bytes=0-1".
func (s *scene) get(fields ...string) *told { return s.ask(0, "GET", "", "", fields...) }

// sibling asks the second peer.
func (s *scene) sibling(fields ...string) *told { return s.ask(1, "GET", "", "", fields...) }

// ask sends a request for what follows the scene's URL to a peer, on a connection of its own.
func (s *scene) ask(peer int, method, suffix, body string, fields ...string) *told {
	s.Helper()
	text := method + " /" + s.path + suffix + " HTTP/1.1\r\nHost: " + s.peers[peer].listen + "\r\nConnection: close\r\n"
	if body != "" {
		text += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	for _, f := range fields {
		text += f + "\r\n"
	}
	return s.send(peer, method, text+"\r\n"+body)
}

// send sends bytes to a peer, and reads one answer.
func (s *scene) send(peer int, method, text string) *told {
	s.Helper()
	c, err := net.DialTimeout("tcp", s.peers[peer].listen, time.Minute)
	if err != nil {
		s.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	go io.WriteString(c, text)
	in := bufio.NewReader(c)
	for {
		resp, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			return &told{s: s, err: err}
		}
		if resp.StatusCode/100 == 1 {
			continue
		}
		body, err := io.ReadAll(resp.Body)
		return &told{s, resp.StatusCode, resp.Header, string(body), err}
	}
}

// is fails the test unless the answer is whole and has this status and body.
func (a *told) is(status int, body string) *told {
	a.s.Helper()
	if a.err != nil || a.status != status || a.body != body {
		a.s.Errorf("%d %.80q (%s; error %v), want %d %.80q", a.status, a.body, a.how(), a.err, status, body)
	}
	return a
}

func (a *told) how() string { return a.header.Get("Cache-Status") }

// hit fails the test if the answer did not come from the store, or did.
func (a *told) hit(want bool) *told {
	a.s.Helper()
	if a.isHit() != want {
		a.s.Errorf("Cache-Status %q, want a hit: %v", a.how(), want)
	}
	return a
}

// isHit reports whether the answer came from the store. What has just been answered may not be there yet.
func (a *told) isHit() bool { return strings.Contains(a.how(), "; hit") }

// field fails the test unless a field has this value; "" = it must not be there.
func (a *told) field(name, want string) *told {
	a.s.Helper()
	if got := strings.Join(a.header.Values(name), ", "); got != want {
		a.s.Errorf("%s: %q, want %q", name, got, want)
	}
	return a
}

// expires waits until an answer of one second is stale, at a cache that counts whole seconds.
func (s *scene) expires() { time.Sleep(2100 * time.Millisecond) }

// What users of other caches told is tried at two peers.
func TestReports(t *testing.T) {
	o := newReportOrigin(t)
	var peers [2]started
	for i := range peers {
		args := []string{"run", "--name", "report-" + string('a'+rune(i)), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--gossip", "127.0.0.1:0",
			"--origin", o.url, "--store", t.TempDir(), "--sibling-compare", "0"}
		if i > 0 {
			args = append(args, "--join", peers[0].gossip)
		}
		peers[i] = spawn(t, args...).started
	}
	t.Run("rows", func(t *testing.T) { // ends when all have ended: the peers must outlive them
		for i, r := range reports {
			if r.scene == nil {
				continue
			}
			t.Run(reportName(r), func(t *testing.T) {
				t.Parallel()
				r.scene(&scene{t, fmt.Sprintf("r%d", i), peers, o})
			})
		}
	})
}

var notInNames = regexp.MustCompile(`[^a-zA-Z0-9]+`)

// reportName is the name of a report's test.
func reportName(r report) string {
	first, _, _ := strings.Cut(r.of, ",")
	return strings.Trim(notInNames.ReplaceAllString(first, "-"), "-")
}

// REPORTS.md has the rows of the table.
func TestReportsPage(t *testing.T) {
	const name = "REPORTS.md"
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	part := generatedPart.FindSubmatchIndex(page)
	if part == nil {
		t.Fatalf("%s has no part that is generated", name)
	}
	var table, area string
	seen := make(map[string]bool)
	for _, r := range reports {
		if r.area != area {
			area = r.area
			table += fmt.Sprintf("\n### %s\n\n|report|symptom|here|\n|-|-|-|\n", area)
		}
		name := reportName(r)
		if r.scene != nil && seen[name] {
			t.Errorf("two rows have the test %s", name)
		}
		seen[name] = true
		table += fmt.Sprintf("|%s|%s|", r.of, r.symptom)
		if here := strings.TrimSuffix(strings.TrimSuffix(r.result, held), ": "); here != "" {
			table += here + "|"
		}
		table += "\n"
	}
	text := string(page[:part[2]]) + strings.TrimPrefix(table, "\n") + string(page[part[3]:])
	switch {
	case *reportsPage != "":
		if err := os.WriteFile(*reportsPage, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	case text != string(page):
		t.Errorf("%s differs from the table; go test ./cmd/peer -run ReportsPage -reports-page %s writes it", name, name)
	}
}
