//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/mutation"
)

// A place is an origin as a site of the caches under test. Its name is also the host of the site.
type place struct {
	name  string
	app   bool   // an app answers, with prefix under
	under string // of all of its paths
	files bool   // files are served
	share int    // of the mutations
	mode  string // of the peers: one of the constants below
	relay *relay // in front of the origin
}

// How peers serve a place.
const (
	bySites = ""        // as one of their sites
	alone   = "alone"   // by --origin, which is sent its own name
	trusted = "trusted" // as a site, and all clients are trusted proxies
)

// bases are the paths of a place that requests are about.
func (p *place) bases() (list []string) {
	if p.files {
		list = append(list, "/small.txt", "/small.txt", "/static/site.css", "/static/page.html", "/dir/", "/dir", "/none.txt", "/big.bin")
	}
	if p.app {
		for _, path := range []string{"/page", "/page", "/page", "/static/page", "/static/x.css", "/account", "/account", "/account/x", "/missing", "/dir",
			"/ranged/404", "/ranged/500", "/ranged/302", "/ranged/400", "/ranged/416", "/language", "/badvary", "/coded"} {
			list = append(list, p.under+path)
		}
	}
	return list
}

// A relay passes connections on to an origin, and notes which attempts came by.
type relay struct {
	addr, origin string
	mu           sync.Mutex
	seen         map[string]bool
	t            *testing.T
}

// marked finds the mark of an attempt.
var marked = regexp.MustCompile(`n=\d{7}z`)

func newRelay(t *testing.T, origin string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	r := &relay{addr: l.Addr().String(), origin: origin, seen: make(map[string]bool), t: t}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go r.pass(c)
		}
	}()
	return r
}

func (r *relay) pass(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", r.origin)
	for tries := 0; err != nil && tries < 100; tries++ { // sockets that wait for their end may have all ports
		time.Sleep(50 * time.Millisecond)
		to, err = net.Dial("tcp", r.origin)
	}
	if err != nil {
		r.t.Errorf("the origin of the test is not reached: %v", err)
		return
	}
	defer to.Close()
	go func() {
		io.Copy(from, to)
		from.(*net.TCPConn).CloseWrite()
	}()
	buf := make([]byte, 64<<10)
	for kept := 0; ; { // what may be the beginning of a mark
		n, err := from.Read(buf[kept:])
		if n > 0 {
			if _, err := to.Write(buf[kept : kept+n]); err != nil {
				return
			}
			all := buf[:kept+n]
			r.mu.Lock()
			for _, mark := range marked.FindAll(all, -1) {
				r.seen[string(mark)] = true
			}
			r.mu.Unlock()
			kept = copy(buf, all[max(0, len(all)-9):])
		}
		if err != nil {
			to.(*net.TCPConn).CloseWrite()
			if err != io.EOF {
				return
			}
			break
		}
	}
	io.Copy(io.Discard, to) // until the origin closes: the other copy may have ended first
}

// saw reports whether a request with the mark came by.
func (r *relay) saw(mark string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[mark]
}

// poisonTree writes the files that file servers serve.
func poisonTree(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "files") // not t.TempDir, which another user cannot reach
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	written := time.Now().Add(-24 * time.Hour)
	for name, text := range map[string]string{
		"small.txt": strings.Repeat("small ", 50), "static/site.css": "body { color: red }", "static/page.html": "<p>page",
		"dir/index.html": "<p>index", "big.bin": strings.Repeat("0123456789abcdef", 80<<10),
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		os.Chtimes(file, written, written)
	}
	return dir
}

// always adds a lifetime to every answer, errors included, like nginx's add_header with always.
func always(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(&alwaysWriter{w}, r) })
}

type alwaysWriter struct{ http.ResponseWriter }

func (w *alwaysWriter) WriteHeader(status int) {
	w.Header().Set("Cache-Control", "public, max-age=3600")
	w.ResponseWriter.WriteHeader(status)
}

// poisonPlaces starts the origins. installed: also the programs, as far as they are installed. modes:
// also for peers that are configured in other ways.
func poisonPlaces(t *testing.T, installed, modes bool) (places []*place) {
	t.Helper()
	add := func(p place, name, addr string) {
		p.name, p.relay = name+".test", newRelay(t, addr)
		places = append(places, &p)
	}
	start := func(h http.Handler) string {
		s := httptest.NewUnstartedServer(h)
		s.Config.ErrorLog = discarded
		s.Start()
		t.Cleanup(s.Close)
		return s.Listener.Addr().String()
	}
	tree, binary := poisonTree(t), testBinary(t)
	for _, stated := range []bool{true, false} {
		how := map[bool]string{true: "stated", false: "unstated"}[stated]
		files := http.FileServer(http.Dir(tree))
		if stated {
			files = always(files)
		}
		add(place{files: true, share: 8}, "gofiles-"+how, start(files))
		add(place{app: true, share: 16}, "app-"+how, start(app{stated: stated}))
		add(place{app: true, share: 12}, "loose-"+how, start(app{stated: stated, loose: true}))
		if testing.Short() && !installed { // a test binary with the race detector takes long to start
			continue
		}
		add(place{app: true, share: 1}, "cgi-"+how, start(&cgi.Handler{Path: binary, Env: []string{asCGI + "=" + how + " "}, Stderr: io.Discard, Logger: discarded}))
	}
	if modes {
		add(place{app: true, share: 4, mode: alone}, "alone-stated", start(app{stated: true}))
		add(place{app: true, share: 6, mode: trusted}, "trusted-stated", start(app{stated: true, behind: true}))
	}
	if !installed {
		return places
	}
	if stated, unstated, ok := startWSGI(t); ok {
		add(place{app: true, share: 10}, "wsgi-stated", stated)
		add(place{app: true, share: 10}, "wsgi-unstated", unstated)
	}
	if program(t, "nginx") != "" {
		at := freeAddrs(t, 2)
		stated, unstated := at[0], at[1]
		server := "server { listen %s; root " + tree + "; keepalive_requests 1000000; keepalive_timeout 1h; %s }\n"
		startNginx(t, stated, fmt.Sprintf(server, stated, `add_header Cache-Control "public, max-age=3600" always;`)+fmt.Sprintf(server, unstated, ""))
		add(place{files: true, share: 10}, "nginx-stated", stated)
		add(place{files: true, share: 10}, "nginx-unstated", unstated)
	}
	if lighttpd := program(t, "lighttpd"); lighttpd != "" {
		stated, unstated := startLighttpd(t, lighttpd, tree, binary)
		add(place{files: true, share: 8}, "lighttpd-stated", stated)
		add(place{files: true, share: 8}, "lighttpd-unstated", unstated)
		add(place{app: true, under: "/app.cgi", share: 1}, "lighttpdcgi-stated", stated)
		add(place{app: true, under: "/app.cgi", share: 1}, "lighttpdcgi-unstated", unstated)
	}
	return places
}

func testBinary(t *testing.T) string {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// startWSGI starts testdata/app.py.
func startWSGI(t *testing.T) (stated, unstated string, ok bool) {
	t.Helper()
	python := program(t, "python3")
	if python == "" {
		return "", "", false
	}
	args := []string{filepath.Join("testdata", "app.py")}
	for _, c := range mutation.Claims {
		args = append(args, c[0]+"="+c[1])
	}
	cmd := exec.Command(python, args...)
	in, err := cmd.StdinPipe() // it ends when this is closed
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs lockedBuffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Process.Kill(); cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	ports := strings.Fields(line)
	if err != nil || len(ports) != 2 {
		t.Fatalf("%s: %v, %q\n%s", args[0], err, line, errs.String())
	}
	return "127.0.0.1:" + ports[0], "127.0.0.1:" + ports[1], true
}

// startLighttpd starts a lighttpd that serves files, and the app as a CGI program.
func startLighttpd(t *testing.T, lighttpd, tree, binary string) (stated, unstated string) {
	t.Helper()
	dir := t.TempDir()
	addrs := freeAddrs(t, 2)
	if err := os.Symlink(binary, filepath.Join(tree, "app.cgi")); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`server.document-root = %q
server.modules = ("mod_indexfile", "mod_access", "mod_setenv", "mod_cgi", "mod_staticfile")
server.bind = "127.0.0.1"
server.port = %s
server.errorlog = "%s/error.log"
index-file.names = ("index.html")
mimetype.assign = (".css" => "text/css", ".html" => "text/html", ".txt" => "text/plain", "" => "application/octet-stream")
server.max-keep-alive-requests = 60000
server.max-keep-alive-idle = 3600
cgi.assign = (".cgi" => "")
`, tree, port(addrs[0]), dir)
	for i, how := range []string{"stated", "unstated"} {
		lines := `	setenv.set-environment = ("` + asCGI + `" => "` + how + ` /app.cgi")` + "\n"
		if i == 0 {
			lines += `	$HTTP["url"] !~ "app" { setenv.set-response-header = ("Cache-Control" => "public, max-age=3600") }` + "\n" // the app says private of some
		}
		text += fmt.Sprintf("$SERVER[\"socket\"] == %q {\n%s}\n", addrs[i], lines)
	}
	conf := filepath.Join(dir, "lighttpd.conf")
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	startServer(t, addrs[0], lighttpd, "-D", "-f", conf)
	return addrs[0], addrs[1]
}

func port(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	if _, err := strconv.Atoi(port); err != nil {
		panic(addr)
	}
	return port
}
