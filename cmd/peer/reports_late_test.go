//go:build unix

package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
)

// alone has the scene's first peer be one of its own, and returns its store.
func (s *scene) alone(args ...string) (store string) {
	s.Helper()
	store = s.TempDir()
	s.peers[0] = spawn(s.T, append([]string{"run", "--name", "own", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--gossip", "127.0.0.1:0",
		"--origin", s.origin.url, "--store", store}, args...)...).started
	return store
}

// refusesOne has an origin refuse the requests with a field, with a lifetime, and fails the test if others get that.
func refusesOne(status, field string) func(s *scene) {
	return func(s *scene) {
		name, _, _ := strings.Cut(field, ":")
		s.answer(func(n int, r *http.Request) string {
			if r.Header.Get(name) != "" {
				return status + fresh + "||no"
			}
			return "200" + fresh + "||yes"
		})
		s.get(field)
		s.get().is(200, "yes")
		s.sibling().is(200, "yes")
	}
}

var lateReports = []report{
	{"HTTP semantics", "varnishcache/varnish-cache 2893, jonbaldie/varnish 56", "what Surrogate-Control keeps out is stored by Cache-Control, or vice versa", func(s *scene) {
		for i, fields := range []string{"Surrogate-Control: no-store|Cache-Control: max-age=600", "Surrogate-Control: content=\"ESI/1.0\"|Cache-Control: private, max-age=600",
			"Surrogate-Control: max-age=600|Cache-Control: no-store", "X-Accel-Expires: 0|Cache-Control: max-age=600"} {
			s.answer(func(n int, r *http.Request) string { return "200|" + fields + "||" + r.Header.Get("X-User") })
			s.ask(0, "GET", fmt.Sprint("/", i), "", "X-User: alice").is(200, "alice")
			s.ask(0, "GET", fmt.Sprint("/", i), "", "X-User: bob").is(200, "bob")
			s.ask(1, "GET", fmt.Sprint("/", i), "", "X-User: eve").is(200, "eve")
		}
	}, failed},
	{"HTTP semantics", "BoldGrid/w3-total-cache 350", "one client's 403 is everybody's", refusesOne("403", "User-Agent: scanner"), failed},
	{"HTTP semantics", "kapouer/upcache 26, intershop/intershop-pwa 2188", "one client's 406 is everybody's", refusesOne("406", "Accept: application/x-odd"), failed},

	{"HTTP semantics", "pypi/warehouse 12214", "the compressed copy is of an older version than the plain one", func(s *scene) {
		s.alone("--compress", "gzip")
		s.answer(func(n int, r *http.Request) string {
			return fmt.Sprintf("200|ETag: \"%d\"|Content-Type: text/plain"+fresh+"||%s", n, letters(30_000))
		})
		const gzip, reload = "Accept-Encoding: gzip", "Cache-Control: no-cache"
		for i, fields := range [][]string{{reload}, {reload, gzip}} {
			s.get()
			s.get(gzip)
			s.get(fields...)
			for _, next := range [][]string{{}, {gzip}} {
				if tag := s.get(next...).header.Get("Etag"); !strings.Contains(tag, fmt.Sprint(i+1)) {
					s.Errorf("reload %d: %q gets version %s", i+1, next, tag)
				}
			}
		}
	}, failed},
	{"HTTP semantics", "FoundatioFx/Foundatio.Repositories 323, tigrisdata/tag 106", "a read under way stores again what a write has replaced", func(s *scene) {
		read, written := make(chan bool), make(chan bool)
		s.answer(func(n int, r *http.Request) string {
			switch {
			case r.Method == "PUT":
				return "204"
			case n == 0:
				close(read)
				<-written
				return "200" + fresh + "||old"
			}
			return "200" + fresh + "||new"
		})
		slow := make(chan *told)
		go func() { slow <- s.get() }()
		<-read
		s.ask(1, "PUT", "", "x").is(204, "")
		close(written)
		(<-slow).is(200, "old")
		for range 3 {
			s.get().is(200, "new")
			s.sibling().is(200, "new")
		}
	}, held},

	{"HTTP semantics", "CVE-2025-29927, vercel/next.js", "a framework's own field evades authorization, and the page is stored", func(s *scene) {
		s.answer(func(n int, r *http.Request) string {
			if r.Header.Get("X-Middleware-Subrequest") != "" {
				return "200" + fresh + "||secret"
			}
			return "200" + fresh + "||sign in"
		})
		s.get("X-Middleware-Subrequest: middleware:middleware:middleware").is(200, "sign in")
		s.sibling("x-middleware-subrequest: src/middleware").is(200, "sign in")
	}, held},

	{"Purging", "CVE-2022-3517, isaacs/minimatch", "a pattern with many stars takes exponential time", func(s *scene) {
		s.answers("200" + fresh + "||x")
		long := strings.Repeat("a", 3000)
		s.ask(0, "GET", "/"+long, "").is(200, "x")
		began := time.Now()
		for _, pattern := range []string{strings.Repeat("a*", 1000) + "b", strings.Repeat("*", 3000) + "b", strings.Repeat("*a", 1500) + "*b"} {
			got, err := admin.Client(s.peers[0].admin).Purge(s.Context(), admin.PurgeRequest{URL: "/" + s.path + "/" + pattern, Pattern: true}, "")
			if err != nil || got.Failed() > 0 {
				s.Errorf("%v, error %v", got, err)
			}
		}
		if took := time.Since(began); took > 10*time.Second {
			s.Errorf("it took %v", took)
		}
		s.ask(0, "GET", "/"+long, "").is(200, "x").hit(true)
	}, held},

	{"Purging", "users of grace", "what was purged is served as stale", func(s *scene) {
		var down atomic.Bool
		s.answer(func(int, *http.Request) string {
			if down.Load() {
				return "503||down"
			}
			return "200|ETag: \"x\"|Cache-Control: max-age=1, stale-while-revalidate=600, stale-if-error=600||old"
		})
		s.get().is(200, "old")
		s.sibling().is(200, "old") // of the other, or of the origin
		down.Store(true)
		s.expires()
		s.sibling().is(200, "old")
		s.purge("")
		for range 2 {
			s.get().is(503, "down")
			s.sibling().is(503, "down")
		}
	}, held},

	{"Large files and ranges", "cloudflare/cloudflare-docs 32885, http-tests/cache-tests 192", "a 416 with a lifetime is given to all", func(s *scene) {
		s.answer(func(n int, r *http.Request) string {
			if r.Header.Get("Range") != "" {
				return "416|Content-Range: bytes */5" + fresh + "||no"
			}
			return "200" + fresh + "||abcde"
		})
		s.get("Range: bytes=90-").is(416, "no")
		s.get().is(200, "abcde")
		s.sibling("Range: bytes=0-1").is(206, "ab")
		s.get("Range: bytes=90-")
		s.get().is(200, "abcde").hit(true)
	}, held},
	{"Large files and ranges", "RFC 9110 section 15.3.7.2", "multipart/byteranges for one range is taken for bytes", func(s *scene) {
		s.answer(func(n int, r *http.Request) string {
			if r.Header.Get("Range") != "" {
				return "206|Content-Type: multipart/byteranges; boundary=b" + fresh + "||--b\r\nContent-Range: bytes 0-1/5\r\n\r\nab\r\n--b--\r\n"
			}
			return "200" + fresh + "||abcde"
		})
		if a := s.get("Range: bytes=0-1"); a.body != "ab" && !strings.HasPrefix(a.header.Get("Content-Type"), "multipart/") {
			s.Errorf("%d %q, %v", a.status, a.body, a.header)
		}
		s.get().is(200, "abcde")
		s.sibling().is(200, "abcde")
		s.sibling("Range: bytes=1-2").is(206, "bc")
	}, held},

	{"Overload and limits", "ruby/net-http 319", "103 without an end", func(s *scene) {
		ended := make(chan bool)
		s.write(func(n int, r *http.Request, c net.Conn) string {
			for {
				if _, err := io.WriteString(c, "HTTP/1.1 103 X\r\nLink: </a>\r\n\r\n"); err != nil {
					close(ended)
					return "200||x"
				}
			}
		})
		if a := s.get(); a.status != 502 {
			s.Errorf("%d %s", a.status, a.how())
		}
		<-ended
	}, held},
	{"Overload and limits", "origins that never end a line", "memory and time without a limit", func(s *scene) {
		for i, begin := range []string{"HTTP/1.1 200 ", "HTTP/1.1 200 OK\r\nX-A: ", "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-A: ",
			"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nTransfer-Encoding: chunked\r\n\r\n1;", "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nTransfer-Encoding: chunked\r\n\r\n0000"} {
			var over atomic.Bool
			s.write(func(n int, r *http.Request, c net.Conn) string {
				if over.Load() {
					return "200||x"
				}
				_, err := io.WriteString(c, begin)
				for junk := strings.Repeat("0", 4096); err == nil; {
					_, err = io.WriteString(c, junk)
				}
				c.Close()
				return ""
			})
			if a := s.ask(0, "GET", fmt.Sprint("/", i), ""); a.err == nil && a.status == 200 {
				s.Errorf("%.20q: 200 %q", begin, a.body)
			}
			over.Store(true)
			s.ask(0, "GET", fmt.Sprint("/", i), "").hit(false)
		}
	}, held},

	{"Overload and limits", "CVE-2023-39326, golang/go 64433", "chunk extensions without an end", func(s *scene) {
		s.answers("200||x")
		c, err := net.Dial("tcp", s.peers[0].listen)
		if err != nil {
			s.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(time.Minute))
		io.WriteString(c, "POST /"+s.path+" HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
		sent := 0
		for chunk := "1;" + strings.Repeat("a", 3000) + "\r\nx\r\n"; sent < 64<<20; sent += len(chunk) {
			if _, err := io.WriteString(c, chunk); err != nil {
				break
			}
		}
		if sent >= 64<<20 {
			s.Errorf("%d bytes were read", sent)
		}
	}, held},

	{"Disks", "NixOS/nixpkgs 257828, torizon/meta-toradex-torizon 172", "systemd-tmpfiles removes files of a store in use", func(s *scene) {
		store := s.alone("--memory-size", "1MiB")
		body := letters(200_000)
		s.answer(func(n int, r *http.Request) string { return "200" + fresh + "||" + body })
		const many = 300 // more than stay open
		for i := range many {
			s.ask(0, "GET", fmt.Sprint("/", i), "").is(200, body)
		}
		files, err := filepath.Glob(filepath.Join(store, "objects", "bodies", "*", "*"))
		if err != nil || len(files) < many {
			s.Fatalf("%d files, %v", len(files), err)
		}
		for i, name := range files {
			if i%2 == 0 {
				os.Remove(name)
			}
		}
		for range 2 {
			for i := range many {
				s.ask(0, "GET", fmt.Sprint("/", i), "").is(200, body)
			}
		}
	}, held},
	{"Disks", "users of NFS: its server is gone", "all requests stop", nil, "`TestDiskHangs` (diskstore): " + failed},

	{"Configuration and logs", "the same users, for access logs", "a reload hangs, and nothing ends the process", nil, "`TestReopenOnAStuckDisk` (accesslog): " + failed},
	{"Configuration and logs", "traefik/traefik 1821, oxyno-zeta/s3-proxy 121, gofr-dev/gofr 3460", "what is no UTF-8 breaks the metrics", func(s *scene) {
		s.answers("200" + fresh + "||x")
		for _, line := range []string{"G\xffT /", "GET /\xff\xfe", "GET /%FF%FE", "GET /?\xc0\xaf", "\x1b[31m /", "FOO\xa0 /"} {
			s.send(0, "GET", line+" HTTP/1.1\r\nHost: x\r\nVia: 1.1 \xff\xfe\r\nUser-Agent: \xff\xfe\r\nConnection: close\r\n\r\n")
		}
		for _, page := range []string{"/metrics", "/status.json", "/misses.json", "/events.json"} {
			r, err := http.Get("http://" + s.peers[0].admin + page)
			if err != nil {
				s.Fatal(err)
			}
			b, err := io.ReadAll(r.Body)
			r.Body.Close()
			if r.StatusCode != 200 || err != nil || !utf8.Valid(b) || strings.ContainsAny(string(b), "\x1b\x00") {
				s.Errorf("%s: %d, %v, valid %v", page, r.StatusCode, err, utf8.Valid(b))
			}
		}
	}, held},
	{"Configuration and logs", "CVE-2021-25743, kubernetes/kubernetes 101695", "what a stranger sent rewrites a terminal", func(s *scene) {
		s.answers("200" + fresh + "||x")
		l := s.logs("User-Agent: a\x1b[31m", "Referer: b\x9b31m")
		s.send(0, "GET", "GET /"+s.path+"\x1b]0;x HTTP/1.1\r\nHost: x\x1b[2J\r\nUser-Agent: \x1b[31m\x7f\r\nConnection: close\r\n\r\n")
		s.ask(0, "GET", "/%1b%5b31m\xc2\x9b31m", "", "User-Agent: \xc2\x9b31m")
		text, err := os.ReadFile(l.path)
		if i := strings.IndexAny(string(text), "\x1b\x00\x07\x7f\x08"); err != nil || i >= 0 {
			s.Errorf("%q, %v", text, err)
		}
	}, held},
	{"Configuration and logs", "CVE-2019-11253, kubernetes/kubernetes 83253", "aliases within aliases take all memory", func(s *scene) {
		name, text := filepath.Join(s.TempDir(), "peer.yaml"), "a: &a [x,x,x,x,x,x,x,x,x]\n"
		for c := 'b'; c < 'l'; c++ {
			text += fmt.Sprintf("%c: &%c [%s*%c]\n", c, c, strings.Repeat(fmt.Sprintf("*%c,", c-1), 8), c-1)
		}
		if err := os.WriteFile(name, []byte(text+"rules: *k\nsites: *k\n"), 0o600); err != nil {
			s.Fatal(err)
		}
		began := time.Now()
		if err := run(s.Context(), []string{"validate", "--config", name}, io.Discard, io.Discard); err == nil || time.Since(began) > 20*time.Second {
			s.Errorf("%v after %v", err, time.Since(began))
		}
	}, held},

	{"Configuration and logs", "users of HTTP/2", "streams are reset, and no log says why", nil, "`TestBrokenFramesAreLogged` (node): " + failed},
	{"Membership and networks", "Cloudflare, A Byzantine failure in the real world (2020)", "two of several do not reach each other, and nobody says so", nil,
		"`TestPeersThatOnlyOthersReach` (gossip): " + failed},

	{"Build caches, mirrors, registries", "registries with signed addresses", "a client gets another one's", func(s *scene) {
		for i, status := range []string{"302", "303", "307"} {
			s.answer(func(n int, r *http.Request) string {
				return fmt.Sprintf("%s|Location: http://store.test/blob?signature=%d|Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT||", status, n)
			})
			first := s.ask(0, "GET", fmt.Sprint("/", i), "").header.Get("Location")
			for peer := range 2 {
				if got := s.ask(peer, "GET", fmt.Sprint("/", i), "").header.Get("Location"); got == first || got == "" {
					s.Errorf("%s: %s for two clients", status, got)
				}
			}
		}
	}, held},
	{"Build caches, mirrors, registries", "git's http-backend, Git-Protocol without Vary", "a client gets the other protocol", func(s *scene) {
		s.answer(func(n int, r *http.Request) string {
			return "200|Expires: Fri, 01 Jan 1980 00:00:00 GMT|Pragma: no-cache|Cache-Control: no-cache, max-age=0, must-revalidate||" + r.Header.Get("Git-Protocol")
		})
		for range 2 {
			s.ask(0, "GET", "/info/refs?service=git-upload-pack", "", "Git-Protocol: version=2").is(200, "version=2")
			s.ask(0, "GET", "/info/refs?service=git-upload-pack", "").is(200, "")
			s.ask(1, "GET", "/info/refs?service=git-upload-pack", "", "Git-Protocol: version=1").is(200, "version=1")
		}
	}, held},
}
