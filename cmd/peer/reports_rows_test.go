//go:build unix

package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/mutation"
)

const (
	fresh = "|Cache-Control: max-age=600"
	brief = "|Cache-Control: max-age=1"
	held  = "held"
)

// The reports, by area. What a scene shows is what REPORTS.md says.
var reports = byArea(firstReports, moreReports, frameReports, lateReports)

var firstReports = []report{
	{"HTTP semantics", "varnishcache/varnish-cache 3169", "a 304 that names another coding makes a stored body unreadable", func(s *scene) {
		s.answers("200|ETag: \"x\""+brief+"||plain", "304|ETag: \"x\"|Content-Encoding: gzip|Content-Length: 99|Content-Range: bytes 0-1/5"+fresh)
		s.get().is(200, "plain")
		s.expires()
		s.get().is(200, "plain").field("Content-Encoding", "").field("Content-Range", "")
		s.get().is(200, "plain").hit(true).field("Content-Encoding", "").field("Content-Length", "5")
	}, held},
	{"HTTP semantics", "kornelski/http-cache-semantics 56, CVE-2026-93748", "a client's `max-stale` gets what its origin forbids to reuse", func(s *scene) {
		s.answer(func(n int, r *http.Request) string {
			return fmt.Sprintf("200|Cache-Control: max-age=1, %s||%d", r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:], n)
		})
		words := []string{"proxy-revalidate", "must-revalidate", "s-maxage=1", "no-cache"}
		for _, w := range words {
			s.ask(0, "GET", "/"+w, "")
		}
		s.expires()
		for i, w := range words {
			s.ask(0, "GET", "/"+w, "", "Cache-Control: max-stale=100").is(200, fmt.Sprint(i+len(words))).hit(false)
		}
	}, held},
	{"HTTP semantics", "darkweak/souin 684", "`stale-while-revalidate` serves stale for ever", func(s *scene) {
		s.answer(func(n int, r *http.Request) string {
			return fmt.Sprintf("200|Cache-Control: max-age=1, stale-while-revalidate=60||%d", n)
		})
		s.get().is(200, "0")
		s.expires()
		s.get().is(200, "0")
		eventually(s.T, time.Minute, "the new page", func() bool { return s.get().body != "0" })
	}, held},
	{"HTTP semantics", "darkweak/souin 337, jiangwenyuan/nuster 69", "a client goes away, and others get half", func(s *scene) {
		s.write(slowly(10, "0123456789"))
		c, err := net.Dial("tcp", s.peers[0].listen)
		if err != nil {
			s.Fatal(err)
		}
		fmt.Fprintf(c, "GET /%s HTTP/1.1\r\nHost: x\r\n\r\n", s.path)
		io.ReadFull(c, make([]byte, 300))
		c.Close()
		want := strings.Repeat("0123456789", 10)
		s.get().is(200, want)
		s.get().is(200, want)
		s.sibling().is(200, want)
	}, held},
	{"HTTP semantics", "caddyserver/cache-handler 59, 112", "HEAD gets `Content-Length: 0`, or none", func(s *scene) {
		s.answers("200" + fresh + "||0123456789")
		s.ask(0, "HEAD", "", "").field("Content-Length", "10")
		s.get().is(200, "0123456789")
		eventually(s.T, time.Minute, "a hit", func() bool { return s.ask(0, "HEAD", "", "").isHit() })
		s.ask(0, "HEAD", "", "").hit(true).field("Content-Length", "10")
		s.ask(1, "HEAD", "", "").field("Content-Length", "10")
	}, held},
	{"HTTP semantics", "tempesta-tech/tempesta 416", "GET after a stored HEAD waits for a body that never comes", func(s *scene) {
		s.answers("200" + fresh + "||body")
		s.ask(0, "HEAD", "", "")
		s.ask(0, "HEAD", "", "")
		s.get().is(200, "body")
		s.sibling().is(200, "body")
	}, held},
	{"HTTP semantics", "npm/make-fetch-happen 293", "an empty answer is never stored", func(s *scene) {
		s.answers("200" + fresh + "||")
		s.get().is(200, "")
		s.get().is(200, "").hit(true)
		s.sibling().is(200, "")
	}, held},
	{"HTTP semantics", "jonbaldie/varnish 71", "grace serves what says `must-revalidate`, as long as the origin is down", func(s *scene) {
		s.answers("200|Cache-Control: max-age=1, must-revalidate, stale-if-error=60||old", "503||down")
		s.get().is(200, "old")
		s.expires()
		s.get().is(503, "down")
	}, held},
	{"HTTP semantics", "ledgetech/ledge 201", "a page that is gone, or private, is served stale", func(s *scene) {
		became := []string{"404|Cache-Control: no-store||gone", "200|Cache-Control: private||mine", "200|Set-Cookie: a=b||yours", "403||no"}
		s.answer(func(n int, r *http.Request) string {
			if n < len(became) {
				return "200|Cache-Control: max-age=1, stale-while-revalidate=600||page"
			}
			return became[r.URL.Path[len(r.URL.Path)-1]-'0']
		})
		for i := range became {
			s.ask(0, "GET", fmt.Sprint("/", i), "").is(200, "page")
		}
		s.expires()
		for i, text := range became {
			s.ask(0, "GET", fmt.Sprint("/", i), "").is(200, "page")
			_, want, _ := strings.Cut(text, "||")
			eventually(s.T, time.Minute, want, func() bool { return s.ask(0, "GET", fmt.Sprint("/", i), "").body == want })
		}
	}, "it failed"},
	{"HTTP semantics", "mattiasgeniar/varnish-4.0-configuration-templates 24, magento/magento2 40673", "a 500 in the background replaces the page that was good", func(s *scene) {
		s.answers("200|Cache-Control: max-age=1, stale-while-revalidate=60, stale-if-error=60||page", "500||error")
		s.get().is(200, "page")
		s.expires()
		for range 3 {
			s.get().is(200, "page")
			time.Sleep(50 * time.Millisecond)
		}
	}, held},
	{"HTTP semantics", "fabriziosalmi/zion 260", "variants by a field that is on no list are given to everybody", func(s *scene) {
		s.answer(func(n int, r *http.Request) string {
			return "200|Vary: X-Odd, accept-LANGUAGE" + fresh + "||" + r.Header.Get("X-Odd") + r.Header.Get("Accept-Language")
		})
		for range 2 {
			s.get("X-Odd: a").is(200, "a")
			s.get("X-Odd: b").is(200, "b")
			s.get("X-Odd: a", "Accept-Language: de").is(200, "ade")
			s.sibling("X-Odd: b").is(200, "b")
			s.sibling("X-Odd: c").is(200, "c")
		}
	}, held},
	{"HTTP semantics", "CVE-2018-14773, symfony/symfony", "X-Original-URL and its like choose another page, which is stored here", func(s *scene) {
		s.answer(func(n int, r *http.Request) string {
			out := "200" + fresh + "||"
			for _, name := range []string{"X-Original-Url", "X-Rewrite-Url", "X-Forwarded-Host", "X-Host", "X-Forwarded-Scheme", "X-Http-Method-Override", "Forwarded"} {
				out += r.Header.Get(name)
			}
			return out
		})
		s.get("X-Original-URL: /admin", "X-Rewrite-URL: /admin", "X-Forwarded-Host: evil", "X-Host: evil", "X-Forwarded-Scheme: ftp", "X-HTTP-Method-Override: POST", "Forwarded: host=evil").is(200, "")
		s.sibling().is(200, "")
	}, held},
	{"HTTP semantics", "CVE-2020-28473, bottlepy/bottle 1331; CVE-2020-28476, tornadoweb/tornado 2981", "a `;` that only the application takes for `&` hides a parameter", func(s *scene) {
		s.answer(func(n int, r *http.Request) string { return "200" + fresh + "||" + r.URL.RawQuery })
		for _, q := range []string{"?q=1;x=evil", "?q=1", "?q=1&x=evil", "?q=1%3bx=evil"} {
			s.ask(0, "GET", q, "").is(200, q[1:])
			s.ask(1, "GET", q, "").is(200, q[1:])
		}
	}, held},
	{"HTTP semantics", "git/git-scm.com 1551", "a body that is no part of the key decides what is stored", func(s *scene) {
		s.answer(func(n int, r *http.Request) string {
			b, _ := io.ReadAll(r.Body)
			return "200" + fresh + "||body " + string(b)
		})
		s.ask(0, "GET", "", "evil").is(200, "body evil")
		s.get().is(200, "body ")
		s.sibling().is(200, "body ")
	}, held},

	{"Purging", "litespeedtech/openlitespeed 128, varnishcache/varnish-cache 1982", "a purge removes one variant of the URL", func(s *scene) {
		s.answer(func(n int, r *http.Request) string {
			return fmt.Sprintf("200|Vary: Accept-Encoding, Accept-Language"+fresh+"||%d", n)
		})
		variants := []string{"Accept-Language: de", "Accept-Language: fr", "Accept-Encoding: gzip"}
		for _, v := range variants {
			s.get(v)
			s.sibling(v)
		}
		before := len(s.asked())
		s.purge("")
		for _, v := range variants {
			for peer := range 2 {
				if got := s.ask(peer, "GET", "", "", v); got.body < fmt.Sprint(before) && len(got.body) == len(fmt.Sprint(before)) {
					s.Errorf("after the purge peer %d has %s of before (%s)", peer, got.body, got.how())
				}
			}
		}
	}, held},
	{"Purging", "FRiCKLE/ngx_cache_purge 55", "404 to a purge, and then the object is a hit again", func(s *scene) {
		var version atomic.Int32
		s.answer(func(int, *http.Request) string { return fmt.Sprintf("200|Vary: X-V"+fresh+"||%d", version.Load()) })
		for _, v := range []string{"X-V: a", "X-V: b"} {
			s.get(v).is(200, "0")
			eventually(s.T, time.Minute, "a hit", func() bool { return s.get(v).isHit() })
		}
		version.Add(1)
		s.purge("")
		s.get("X-V: a").is(200, "1").hit(false)
		s.get("X-V: b").is(200, "1").hit(false)
	}, held},
	{"Purging", "FRiCKLE/ngx_cache_purge 61", "a URL with a query cannot be purged", func(s *scene) {
		s.answer(func(n int, r *http.Request) string { return fmt.Sprintf("200"+fresh+"||%d", n) })
		s.ask(0, "GET", "?a=1&b=%20+", "").is(200, "0")
		s.ask(0, "GET", "?a=1&b=%20+", "").hit(true)
		s.purge("?a=1&b=%20+")
		s.ask(0, "GET", "?a=1&b=%20+", "").is(200, "1")
	}, held},
	{"Purging", "bazelbuild/bazel 12423", "after a PUT, the 404 or object of before is served", func(s *scene) {
		var mu sync.Mutex
		stored := ""
		s.answer(func(n int, r *http.Request) string {
			mu.Lock()
			defer mu.Unlock()
			if r.Method == http.MethodPut {
				b, _ := io.ReadAll(r.Body)
				stored = string(b)
				return "204"
			}
			if stored == "" {
				return "404" + fresh + "||none"
			}
			return "200" + fresh + "||" + stored
		})
		s.get().is(404, "none")
		s.get().hit(true)
		s.sibling().is(404, "none")
		for _, v := range []string{"one", "two"} {
			s.ask(0, "PUT", "", v).is(204, "")
			s.get().is(200, v)
			eventually(s.T, time.Minute, "the sibling to have "+v, func() bool { return s.sibling().body == v })
		}
	}, held},

	{"Large files and ranges", "xroche/httrack 428", "206 with another start: bytes are put where they do not belong", func(s *scene) {
		want := letters(3 << 20)
		s.answer(func(n int, r *http.Request) string { return unaligned(r, want, 100) })
		s.get().is(200, want)
		s.get("Range: bytes=1500000-1500009")
		s.sibling().is(200, want)
	}, held},
	{"Large files and ranges", "NVIDIA/nvcf 1338", "`Range: bytes=0--1`, of clients that ask for an empty file, gets 416", func(s *scene) {
		s.answers("200|ETag: \"x\"" + fresh + "||body")
		for range 2 {
			s.get("Range: bytes=0--1").is(200, "body")
		}
	}, held},
	{"Large files and ranges", "fabiocicerchia/go-proxy-cache 265, senchalabs/connect 512", "a 206 is stored as the whole, and everybody gets a part", func(s *scene) {
		const want = "0123456789"
		s.answer(func(n int, r *http.Request) string {
			if r.Header.Get("Range") == "bytes=2-4" {
				return "206|ETag: \"x\"|Content-Range: bytes 2-4/10" + fresh + "||234"
			}
			return "200|ETag: \"x\"" + fresh + "||" + want
		})
		s.get("Range: bytes=2-4").is(206, "234")
		s.get().is(200, want)
		s.sibling().is(200, want)
		s.sibling("Range: bytes=2-4").is(206, "234")
	}, held},
	{"Large files and ranges", "ironsmile/nedomi 137", "the origin answers 200 to a part, and the download dies", func(s *scene) {
		want := letters(3 << 20)
		s.answer(func(n int, r *http.Request) string {
			if n == 0 {
				return unaligned(r, want, 0)
			}
			return "200|ETag: \"x\"" + fresh + "||" + want
		})
		s.get("Range: bytes=0-99").is(206, want[:100])
		s.get().is(200, want)
		s.sibling().is(200, want)
	}, held},
	{"Large files and ranges", "apache/trafficserver 9274, 3503", "readers of what is being written get its beginning", func(s *scene) {
		s.write(slowly(8, "01234567"))
		want := strings.Repeat("01234567", 8)
		var readers sync.WaitGroup
		for i := range 8 {
			readers.Go(func() {
				time.Sleep(time.Duration(i) * 50 * time.Millisecond)
				s.ask(i%2, "GET", "", "").is(200, want)
			})
		}
		readers.Wait()
	}, held},
	{"Large files and ranges", "BitMiracle-AI/Dormice 86", "a part is given although If-Range names another version", func(s *scene) {
		s.answers("200|ETag: \"x\"|Last-Modified: Wed, 01 Jan 2025 00:00:00 GMT" + fresh + "||0123456789")
		s.get()
		for _, v := range []string{`"y"`, `W/"x"`, "Thu, 01 Jan 1970 00:00:00 GMT", "nonsense"} {
			s.get("Range: bytes=2-3", "If-Range: "+v).is(200, "0123456789")
		}
		s.get("Range: bytes=2-3", `If-Range: "x"`).is(206, "23")
	}, held},
	{"Large files and ranges", "apache/trafficserver 4048", "an answer that breaks off removes the stored one", func(s *scene) {
		s.answers("200|Cache-Control: max-age=1, stale-if-error=60||old", "200|Content-Length: 1000"+fresh+"||", "503||down")
		s.origin.mu.Lock()
		f := s.origin.of[s.path]
		s.origin.mu.Unlock()
		s.write(func(n int, r *http.Request, c net.Conn) string {
			text := f(n, r, c)
			if n == 1 {
				io.WriteString(c, wireText(text, "GET"))
				return ""
			}
			return text
		})
		s.get().is(200, "old")
		s.expires()
		s.get() // perhaps it breaks off, perhaps the stored one comes
		s.get().is(200, "old")
	}, held},
	{"Large files and ranges", "CVE-2024-25111, squid-cache/squid", "thousands of chunks of one byte exhaust a stack", func(s *scene) {
		s.answers("200|Transfer-Encoding: chunked" + fresh + "||" + strings.Repeat("1\r\nx\r\n", 50000) + "0\r\n\r\n")
		s.get().is(200, strings.Repeat("x", 50000))
		s.get().is(200, strings.Repeat("x", 50000)).hit(true)
	}, held},

	{"Origins, TLS, HTTP/2", "cloudflare/pingora 892, tempesta-tech/tempesta 1736, mitmproxy/mitmproxy 5337", "cookies that HTTP/2 splits reach an origin in several fields", func(s *scene) {
		s.answers("200||x")
		r := &wireRequest{Request: mutation.Request{Method: "GET", Path: "/" + s.path, H2: true, Fields: [][2]string{{"Host", s.peers[0].listen}, {"cookie", "a=1"}, {"cookie", "b=2"}}}, patient: true}
		if got := r.exchange(s.peers[0].listen); got.status != 200 {
			s.Fatalf("status %d %s", got.status, got.body)
		}
		if got := s.asked()[0].Header.Values("Cookie"); len(got) != 1 || got[0] != "a=1; b=2" {
			s.Errorf("the origin got %q", got)
		}
	}, held},
	{"Origins, TLS, HTTP/2", "CVE-2022-45060, varnishcache/varnish-cache", "pseudo-fields of HTTP/2 with line ends become another request", func(s *scene) {
		s.answers("200||x")
		for _, method := range []string{"GET /evil HTTP/1.1\r\nX: y", "GET /evil", "GET\r\n", ""} {
			r := &wireRequest{Request: mutation.Request{Method: method, Path: "/" + s.path, H2: true, Fields: [][2]string{{"Host", "x"}}}}
			if got := r.exchange(s.peers[0].listen); got.status == 200 {
				s.Errorf("method %q got %d", method, got.status)
			}
		}
		for _, path := range []string{"/" + s.path + " HTTP/1.1\r\nX: y", s.path, ""} {
			r := &wireRequest{Request: mutation.Request{Method: "GET", Path: path, H2: true, Fields: [][2]string{{"Host", "x"}}}}
			if got := r.exchange(s.peers[0].listen); got.status == 200 {
				s.Errorf("path %q got %d", path, got.status)
			}
		}
		if got := s.asked(); len(got) > 0 {
			s.Errorf("the origin got %v", got[0])
		}
	}, held},
	{"Origins, TLS, HTTP/2", "CVE-2021-36740, varnishcache/varnish-cache", "a body of HTTP/2 beyond its Content-Length becomes the next request", func(s *scene) {
		s.answers("200||x")
		r := &wireRequest{Request: mutation.Request{Method: "POST", Path: "/" + s.path, H2: true, Body: "abcGET /evil HTTP/1.1\r\nHost: x\r\n\r\n",
			Fields: [][2]string{{"Host", "x"}, {"content-length", "3"}}}}
		if got := r.exchange(s.peers[0].listen); got.status == 200 {
			s.Errorf("got %d", got.status)
		}
		for _, r := range s.asked() {
			if r.URL.Path == "/evil" {
				s.Errorf("the origin got %s", r.URL)
			}
		}
	}, held},
	{"Origins, TLS, HTTP/2", "CVE-2025-32094 (OPTIONS, a folded Expect, a body)", "one hop's body is the next hop's next request", func(s *scene) {
		s.answers("200||x")
		for _, expect := range []string{"Expect:\r\n 100-continue", "Expect: y 100-continue", "Expect: 100-continue\r\nExpect: y", "Expect: 100-CONTINUE"} {
			for _, method := range []string{"OPTIONS", "GET", "POST", "HEAD"} {
				s.send(0, method, method+" /"+s.path+" HTTP/1.1\r\nHost: x\r\n"+expect+"\r\nContent-Length: 40\r\nConnection: close\r\n\r\n"+fmt.Sprintf("%-40s", "GET /"+s.path+"/evil HTTP/1.1\r\nX: "))
			}
		}
		for _, r := range s.asked() {
			if strings.HasSuffix(r.URL.Path, "/evil") {
				s.Errorf("the origin got %s %s", r.Method, r.URL)
			}
		}
	}, held},
	{"Origins, TLS, HTTP/2", "CVE-2025-55315, dotnet/aspnetcore; CVE-2025-22871, golang/go 71988", "LF alone ends a chunk's line for one hop", func(s *scene) {
		s.answers("200||x")
		evil := fmt.Sprintf("GET /%s/evil HTTP/1.1\r\nHost: x\r\n\r\n", s.path)
		for _, chunk := range []string{"2;\nxx\r\n%x\r\n", "2\nxx\n%x\n", "2;a=\n\r\nxx\r\n%x\r\n", "+2\r\nxx\r\n%x\r\n", "0x2\r\nxx\r\n%x\r\n"} {
			body := fmt.Sprintf(chunk, len(evil)) + evil + "\r\n0\r\n\r\n"
			if got := s.send(0, "POST", "POST /"+s.path+" HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"+body); got.status == 200 {
				s.Errorf("%q: %d", chunk, got.status)
			}
		}
		for _, r := range s.asked() {
			if strings.HasSuffix(r.URL.Path, "/evil") {
				s.Errorf("the origin got %s %s", r.Method, r.URL)
			}
		}
	}, held},
	{"Origins, TLS, HTTP/2", "CVE-2022-23959, varnishcache/varnish-cache", "the body of a request that the cache answers becomes the next request", func(s *scene) {
		s.answers("200" + fresh + "||x")
		s.get()
		evil := fmt.Sprintf("GET /%s/evil HTTP/1.1\r\nHost: x\r\n\r\n", s.path)
		for _, first := range []string{"TRACE /" + s.path, "GET /" + s.path, "CONNECT x:1", "OPTIONS *", "GET http://other.example/"} {
			s.send(0, "GET", fmt.Sprintf("%s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", first, len(evil), evil))
		}
		time.Sleep(100 * time.Millisecond)
		for _, r := range s.asked() {
			if strings.HasSuffix(r.URL.Path, "/evil") {
				s.Errorf("the origin got %s %s", r.Method, r.URL)
			}
		}
	}, held},
	{"Origins, TLS, HTTP/2", "CVE-2024-24791, golang/go 67555", "an origin refuses an upload early, and the next request on its connection fails", func(s *scene) {
		s.answer(func(n int, r *http.Request) string {
			if r.Method == http.MethodPut {
				return "413||no"
			}
			return "200||fine"
		})
		for range 5 {
			s.ask(0, "PUT", "", strings.Repeat("x", 100), "Expect: 100-continue").is(413, "no")
			s.get().is(200, "fine")
		}
	}, held},
	{"Origins, TLS, HTTP/2", "CVE-2026-2833, cloudflare/pingora; CVE-2026-58055, nghttp2/nghttp2 2809", "what follows a request to change the protocol goes on unread", func(s *scene) {
		s.answer(func(n int, r *http.Request) string {
			body, _ := io.ReadAll(r.Body)
			return "200|Cache-Control: no-store||" + r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:] + string(body)
		})
		one := "GET /" + s.path + "/%s HTTP/1.1\r\nHost: x\r\n%s\r\n"
		first := fmt.Sprintf(one, "first", "Connection: Upgrade\r\nUpgrade: other\r\nContent-Length: 5\r\n") + "hello"
		c, err := net.Dial("tcp", s.peers[0].listen)
		if err != nil {
			s.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, first+fmt.Sprintf(one, "second", "Connection: close\r\n"))
		all, err := io.ReadAll(c)
		if i, j := strings.Index(string(all), "\r\n\r\nfirsthello"), strings.Index(string(all), "\r\n\r\nsecond"); err != nil || i < 0 || j < i {
			s.Errorf("%v, %q", err, all)
		}
		if r := s.asked(); len(r) != 2 || r[0].Header.Get("Upgrade") != "" || r[1].Header.Get("Via") == "" {
			s.Errorf("the origin got %v", r)
		}
	}, held},
	{"Origins, TLS, HTTP/2", "CVE-2023-49285, squid-cache/squid", "a date that is none ends the process", func(s *scene) {
		for _, date := range []string{"", " ", "0", "Sun, 99 Foo 99999 99:99:99 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", strings.Repeat("9", 4000), "Sun, 06 Nov 1994 08:49:60 GMT"} {
			s.answers("200|Last-Modified: " + date + "|Expires: " + date + "|Date: " + date + "||x")
			s.get("If-Modified-Since: "+date, "If-Unmodified-Since: "+date, "If-Range: "+date).is(200, "x")
		}
	}, held},

	{"Overload and limits", "Nguyen, Lo Iacono and Federrath, Your Cache Has Fallen (CCS 2019)", "an oversized header makes an error of a page", func(s *scene) {
		s.answer(func(n int, r *http.Request) string {
			if len(r.Header.Get("X-Long")) > 1000 || r.Header.Get("X-Meta") != "" {
				return "400" + fresh + "||bad"
			}
			return "200" + fresh + "||page"
		})
		s.get("X-Long: "+strings.Repeat("a", 4000)).is(400, "bad")
		s.get().is(200, "page")
		s.ask(0, "GET", "/2", "", "X-Meta: \x01")
		s.ask(0, "GET", "/2", "").is(200, "page")
		s.sibling().is(200, "page")
	}, held},
	{"Overload and limits", "deis/router 293, nginx/kubernetes-ingress 2123", "502 for a page with a long policy or many cookies", func(s *scene) {
		s.answers("200|X-Long: " + strings.Repeat("v", 60000) + fresh + "||x")
		s.get().is(200, "x")
		s.sibling().is(200, "x")
	}, held},
	{"Overload and limits", "CVE-2011-3192, apache/httpd; nginx/nginx 988; yhirose/cpp-httplib 1766", "many ranges get more bytes than the object has", func(s *scene) {
		whole := letters(2000)
		s.answers("200|ETag: \"x\"|Accept-Ranges: bytes" + fresh + "||" + whole)
		s.get().is(200, whole)
		for _, n := range []int{2, 5, 20, 100, 1300} {
			for _, to := range []string{"%d-%d,", "0-,%.0d%.0d", "%d-,%.0d"} {
				var list string
				for i := range n {
					list += fmt.Sprintf(to, i, i)
				}
				for peer := range 2 {
					if got := s.ask(peer, "GET", "", "", "Range: bytes="+strings.TrimSuffix(list, ",")); got.err != nil || len(got.body) > len(whole) {
						s.Errorf("%d ranges as %s: status %d, %d bytes, %v", n, to, got.status, len(got.body), got.err)
					}
				}
			}
		}
	}, held},

	{"Disks", "varnishcache/varnish-cache 1792", "it does not start again on a disk that is almost full", nil,
		"`TestDiskSmallerThanStore`, `TestFullDisk` (diskstore): held"},
	{"Disks", "apache/trafficserver 7064, 2983", "an object that is damaged on disk breaks off each download", nil,
		"`TestFlips`, `TestFollowSpoiled` (diskstore): held"},
	{"Disks", "erlang/otp 752 (mnesia)",
		"without descriptors, a log is deleted as broken", nil,
		"`TestNoDescriptors` (diskstore): it failed"},
	{"Disks", "dgraph-io/badger 767, ipfs/go-ds-badger 54",
		"all is deleted, and the disk stays as full as it was", nil,
		"`TestDeletedGivesRoom` (diskstore): held"},
	{"Disks", "dgraph-io/badger 542",
		"a value that is written again and again grows without end", nil,
		"`TestDescribedForEver` (diskstore): held"},
	{"Disks", "etcd-io/bbolt 567, etcd-io/etcd 16596",
		"a power cut during the first write leaves a store that never opens", nil,
		"`TestFirstSegmentTorn` (diskstore): held"},
	{"Disks", "varnishcache/varnish-cache 4256",
		"a full store has no room for a large body while others are sent", nil,
		"`TestLargeIntoFull` (diskstore): held"},
	{"Disks", "dgraph-io/badger 433, bitnami/charts 16615",
		"the lock file of a dead process keeps the next one out", nil,
		"`TestStaleLock` (diskstore): held"},
	{"Disks", "sysown/proxysql 1297, sameersbn/docker-bind 50 (Squid)", "a full disk under the access log ends the process", func(s *scene) {
		p := spawn(s.T, "run", "--name", "full", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--gossip", "127.0.0.1:0",
			"--origin", s.origin.url, "--store", s.TempDir(), "--access-log", "/dev/full")
		s.peers[0] = p.started
		s.answers("200" + fresh + "||x")
		for range 300 {
			s.get().is(200, "x")
		}
		eventually(s.T, time.Minute, "a line about the access log", func() bool { return strings.Contains(p.stderr.String(), "no space left") })
	}, held},

	{"Membership and networks", "hashicorp/serf 605, costela/wesher 11", "after a long partition the halves stay apart", nil,
		"`TestPartitionHeals` (gossip): held"},
	{"Membership and networks", "hashicorp/memberlist 157, hashicorp/consul 733, 6897", "a peer that comes back at another address is refused its name", nil,
		"`TestRestartElsewhereIsNotANameTaken`, `TestNamesSwap` (gossip): held"},
	{"Membership and networks", "hashicorp/serf 301", "the peer that all others joined by is restarted, and not found", nil,
		"`TestSeedRestartsUnnoticed` (gossip): held"},
	{"Membership and networks", "VoltDB/voltdb 7264, hashicorp/serf 333", "a name to join by is looked up once", nil,
		"`TestNamesAreLookedUpEachMinute` (gossip): held"},

	{"Configuration and logs", "tobychui/zoraxy 1295, traefik/traefik 13728, caddyserver/caddy 1025", "the log has the address that a client claims in X-Forwarded-For", func(s *scene) {
		s.answers("200" + fresh + "||x")
		s.logs("X-Forwarded-For: 192.0.2.7", "User-Agent: \"\\ - \x9b2J").has("\"GET /", `"\"\\ - `).hasNot("192.0.2.7", "\x9b")
	}, held},
	{"Configuration and logs", "cloudfoundry/haproxy-boshrelease 168", "a log that was truncated begins with as many zeros as it had bytes", func(s *scene) {
		s.answers("200" + fresh + "||x")
		log := s.logs()
		if err := os.Truncate(log.path, 0); err != nil {
			s.Fatal(err)
		}
		s.get()
		log.has("127.0.0.1").hasNot("\x00")
	}, held},
	{"Configuration and logs", "openwall/john 2802", "a secret of a Windows editor begins with three invisible bytes", nil,
		"`TestSecretsThatLookAlike` (config): it failed"},
	{"Configuration and logs", "arenadata/adcm 839", "of a setting that is given twice, the last counts", nil,
		"`TestFileMistakes` (config): held"},

	{"Filters", "jasondavies/bloomfilter.js 31, facebook/rocksdb 4120", "double hashing in a small filter: too many false positives", nil,
		"`TestFalsePositiveRateOfSmallFilters` (digest): it failed"},
	{"Filters", "ipfs/bbloom 29", "a step of zero sets fewer bits than hashes", nil,
		"`TestPositionsAreUniform`, `TestSmallFiltersOfManyHashes` (digest): held"},
	{"Filters", "FastFilter/fastfilter_cpp 7, 8; RedisBloom/RedisBloom 28", "filters with more than 2^32 bits have false negatives", nil,
		"`TestNeverAFalseNegative` with 2^40 bits, `TestLargeFilterIsRead` (digest): held"},
	{"Filters", "bitly/dablooms 29", "counters of another part of the filter are counted down", nil,
		"`TestCountingAgainstOracle`, `TestSaturatedCountersStick` (digest): held"},

	{"Build caches, mirrors, registries", "docker-archive/docker-registry 872", "a layer that broke off is kept, and given to all", func(s *scene) {
		want := letters(1 << 20)
		s.write(func(n int, r *http.Request, c net.Conn) string {
			if n == 0 {
				fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: %d\r\n\r\n%s", len(want), want[:1<<19])
				time.Sleep(200 * time.Millisecond)
				return ""
			}
			return "200" + fresh + "||" + want
		})
		var pulls sync.WaitGroup
		for i := range 4 {
			pulls.Go(func() { s.ask(i%2, "GET", "", "") })
		}
		pulls.Wait()
		s.get().is(200, want)
		s.sibling().is(200, want)
		s.get().is(200, want)
	}, held},
	{"Build caches, mirrors, registries", "distribution/distribution 2168", "a part of a blob that was asked for again came as the whole", func(s *scene) {
		want := letters(3 << 20)
		s.write(func(n int, r *http.Request, c net.Conn) string {
			if n == 0 {
				fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nETag: \"x\"\r\nAccept-Ranges: bytes\r\nContent-Length: %d\r\n\r\n%s", len(want), want[:1<<20+77])
				return ""
			}
			return "200|ETag: \"x\"" + fresh + "||" + want // whatever range was asked for
		})
		if got := s.get(); got.err == nil {
			got.is(200, want)
		} else if !strings.HasPrefix(want, got.body) {
			s.Errorf("%d bytes that are not the blob's", len(got.body))
		}
		s.get().is(200, want)
		s.sibling().is(200, want)
	}, held},
	{"Build caches, mirrors, registries", "oerdnj/deb.sury.org 1359, termux/termux-packages 817", "an index of yesterday beside one of today: \"Hash Sum mismatch\"", func(s *scene) {
		var day atomic.Int32
		s.answer(func(int, *http.Request) string { return fmt.Sprintf("200|ETag: \"%d\""+fresh+"||%[1]d", day.Load()) })
		s.get().is(200, "0")
		s.sibling().is(200, "0")
		day.Add(1)
		s.sibling("Cache-Control: max-age=0").is(200, "1").hit(false)
		s.sibling().is(200, "1")
		day.Add(1)
		s.get("Cache-Control: max-age=0").hit(false).is(200, "2")
		s.get().is(200, "2")
	}, held},
}

func TestReportNames(t *testing.T) {
	for _, r := range reports {
		if r.of == "" || r.symptom == "" || r.result == "" {
			t.Errorf("%+v", r)
		}
	}
}
