//go:build unix

package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// byArea returns the reports of several lists, those of an area together.
func byArea(lists ...[]report) (all []report) {
	var areas []string
	for _, r := range slices.Concat(lists...) {
		if !slices.Contains(areas, r.area) {
			areas = append(areas, r.area)
		}
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(a, b report) int { return slices.Index(areas, a.area) - slices.Index(areas, b.area) })
	return all
}

const failed = "it failed"

// The reports that were tried later.
var moreReports = []report{
	{"HTTP semantics", "envoyproxy/envoy 47004", "an answer without Date is stale at once", func(s *scene) {
		s.write(func(n int, r *http.Request, c net.Conn) string {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 1\r\n\r\nx")
			return ""
		})
		s.get().is(200, "x")
		for _, got := range []*told{s.get().hit(true), s.sibling().hit(true)} {
			if got.header.Get("Date") == "" {
				s.Errorf("no Date, %s", got.how())
			}
		}
	}, held},
	{"HTTP semantics", "haproxy/haproxy 987", "of a field in two lines, the first selects the variant", func(s *scene) {
		s.answer(func(n int, r *http.Request) string {
			return "200|Vary: Accept-Language" + fresh + "||" + strings.Join(r.Header.Values("Accept-Language"), "+")
		})
		s.get("Accept-Language: de", "Accept-Language: fr")
		s.get("Accept-Language: de").is(200, "de")
		s.sibling("Accept-Language: fr").is(200, "fr")
	}, held},
	{"HTTP semantics", "haproxy/haproxy 2203", "`max-age=0` prevails over `s-maxage`", func(s *scene) {
		s.answers("200|Cache-Control: max-age=0, s-maxage=600, must-revalidate||x")
		s.get()
		s.get().is(200, "x").hit(true)
	}, held},
	{"HTTP semantics", "kornelski/http-cache-semantics 26", "a 304 that does not repeat Content-Encoding removes it", func(s *scene) {
		s.answers("200|ETag: \"x\"|Content-Encoding: gzip|Link: </a>"+brief+"||GZIP", "304|ETag: \"x\""+fresh)
		s.get()
		s.expires()
		for range 2 {
			s.get().is(200, "GZIP").field("Content-Encoding", "gzip").field("Link", "</a>")
		}
	}, held},
	{"HTTP semantics", "bartventer/httpcache 27, verdaccio/verdaccio 6115", "a 304 renews nothing, and each request validates", func(s *scene) {
		s.answers("200|ETag: \"x\""+brief+"||x", "304|ETag: \"x\""+fresh)
		s.get()
		s.expires()
		s.get().is(200, "x")
		s.get().is(200, "x").hit(true)
		if n := len(s.asked()); n != 2 {
			s.Errorf("%d requests to the origin", n)
		}
	}, held},
	{"HTTP semantics", "envoyproxy/envoy 36435", "a 304 for an empty object ends in an error", func(s *scene) {
		s.answers("200|ETag: \"x\""+brief+"||", "304|ETag: \"x\""+fresh)
		s.get()
		s.expires()
		s.get().is(200, "").field("Content-Length", "0")
	}, held},
	{"HTTP semantics", "MicrosoftDocs/azure-docs 13800", "the first request has no Origin, and browsers get no CORS", func(s *scene) {
		s.answer(func(n int, r *http.Request) string {
			if o := r.Header.Get("Origin"); o != "" {
				return "200|Vary: Origin|Access-Control-Allow-Origin: " + o + fresh + "||x"
			}
			return "200|Vary: Origin" + fresh + "||x"
		})
		s.get().field("Access-Control-Allow-Origin", "")
		for _, site := range []string{"https://a.test", "https://b.test", "https://a.test"} {
			s.get("Origin: "+site).field("Access-Control-Allow-Origin", site)
			s.sibling("Origin: "+site).field("Access-Control-Allow-Origin", site)
		}
		s.get().field("Access-Control-Allow-Origin", "")
	}, held},
	{"HTTP semantics", "h2o/h2o 2896, javaee/jersey 1500", "one ETag for both codings: a 304 confirms the other one", func(s *scene) {
		s.answer(func(n int, r *http.Request) string {
			coding, body := "", "plain"
			if r.Header.Get("Accept-Encoding") == "gzip" {
				coding, body = "|Content-Encoding: gzip", "GZIP"
			}
			if r.Header.Get("If-None-Match") != "" {
				return "304|ETag: \"x\"|Vary: Accept-Encoding" + coding + fresh
			}
			return "200|ETag: \"x\"|Vary: Accept-Encoding" + coding + brief + "||" + body
		})
		s.get("Accept-Encoding: gzip")
		s.get()
		s.expires()
		for range 2 {
			s.get("Accept-Encoding: gzip").is(200, "GZIP").field("Content-Encoding", "gzip")
			s.get().is(200, "plain").field("Content-Encoding", "")
		}
	}, held},
	{"HTTP semantics", "CVE-2025-43864, remix-run/react-router 13453; nuxt/nuxt 15667; CVE-2024-46982, vercel/next.js", "a framework's own field has an empty page stored", func(s *scene) {
		names := []string{"X-React-Router-SPA-Mode", "X-React-Router-Prerender-Data", "X-Nuxt-No-Ssr", "X-Now-Route-Matches", "X-Invoke-Status", "X-Invoke-Path"}
		s.answer(func(n int, r *http.Request) string {
			for _, name := range names {
				if r.Header.Get(name) != "" {
					return "200" + fresh + "||"
				}
			}
			return "200" + fresh + "||page"
		})
		for i, name := range names {
			s.ask(0, "GET", fmt.Sprint("/", i), "", name+": 1").is(200, "page")
			s.ask(1, "GET", fmt.Sprint("/", i), "").is(200, "page")
		}
	}, failed},
	{"HTTP semantics", "CPDoS by 401, registries that state a lifetime for it", "one client without credentials locks all others out", func(s *scene) {
		s.answer(func(n int, r *http.Request) string {
			if r.Header.Get("Authorization") == "" {
				return "401|WWW-Authenticate: Basic realm=x" + fresh + "||no"
			}
			return "200" + fresh + "||yes"
		})
		s.get().is(401, "no")
		s.get("Authorization: Basic eA==").is(200, "yes")
		s.sibling("Authorization: Basic eA==").is(200, "yes")
	}, failed},
	{"HTTP semantics", "RFC 4918 section 10.3, WebDAV", "what MOVE or COPY has replaced is served as it was", func(s *scene) {
		s.answer(func(n int, r *http.Request) string {
			if r.Method != "GET" {
				return "201"
			}
			return fmt.Sprintf("200"+fresh+"||%d", n)
		})
		s.ask(0, "GET", "/to", "").is(200, "0")
		s.ask(0, "COPY", "/from", "", "Destination: http://"+s.peers[0].listen+"/"+s.path+"/to").is(201, "")
		s.ask(0, "GET", "/to", "").is(200, "2")
		s.ask(0, "MOVE", "/from", "", "Destination: /"+s.path+"/to").is(201, "")
		s.ask(0, "GET", "/to", "").is(200, "4")
	}, failed},

	{"Purging", "varnishcache/varnish-cache 4082, strapi-community/plugin-rest-cache 132", "a validation under way brings back what was purged", func(s *scene) {
		asked := make(chan bool)
		s.answer(func(n int, r *http.Request) string {
			switch n {
			case 0:
				return "200|ETag: \"x\"" + brief + "||old"
			case 1:
				asked <- true
				<-asked
				return "304|ETag: \"x\"" + fresh
			}
			return "200|ETag: \"y\"" + fresh + "||new"
		})
		s.get().is(200, "old")
		s.expires()
		go s.get()
		<-asked
		s.purge("")
		asked <- true
		eventually(s.T, time.Minute, "the new one", func() bool { return s.get().body == "new" })
		s.get().is(200, "new").hit(true)
	}, held},

	{"Large files and ranges", "pypi/warehouse 12823", "the end of a file, `bytes=-100`, cannot be requested", func(s *scene) {
		want := letters(3 << 20)
		s.answer(func(n int, r *http.Request) string { return unaligned(r, want, 0) })
		s.get("Range: bytes=-100").is(206, want[len(want)-100:])
		s.sibling("Range: bytes=-70000").is(206, want[len(want)-70000:])
		s.get().is(200, want)
	}, held},

	{"Origins, TLS, HTTP/2", "openshift/release 378", "HAProxy's 408 on an idle connection answers the next request", nil,
		"`TestSurplusOnAKeptConnection` (http1): held"},
	{"Origins, TLS, HTTP/2", "cloudflare/cloudflared 1273, caddyserver/caddy 3428", "GOAWAY costs a POST its answer", nil,
		"`TestRequestsThatWereNotBegun` (http1): " + failed},
	{"Origins, TLS, HTTP/2", "tempesta-tech/tempesta 1706", "dates of the past make all stale, and nobody knows", nil,
		"`TestClocksOfOrigins` (proxy): " + failed},

	{"Overload and limits", "express-rate-limit/express-rate-limit 234, traefik/traefik 11508", "ports in X-Forwarded-For evade limits by address", nil,
		"`TestWhoIsAsking` (proxy): " + failed},
	{"Overload and limits", "mailgun/groupcache 38", "a panic hangs all who wait", nil, "`TestLoadPanics` (httpcache): held"},

	{"Configuration and logs", "envoyproxy/gateway 2288", "Forwarded alone names no client", nil,
		"`TestWhoIsAsking` (proxy): " + failed},
	{"Configuration and logs", "openclaw/openclaw 137665, JanssenProject/jans 15098", "`::ffff:10.0.0.0/104` matches nothing", nil,
		"`TestNetwork` (rules): " + failed},
	{"Configuration and logs", "caddyserver/caddy 6404, sozu-proxy/sozu 250", "a site of bücher.example matches nothing", nil,
		"`TestSiteMistakes` (config): " + failed},
	{"Configuration and logs", "jpastuszek/varnishslog 25, cloudfoundry/routing-release 365", "refused requests are not logged", nil,
		"`TestUnread` (conn): " + failed},

	{"Origins, TLS, HTTP/2", "akka/akka-http 1420, httpwg/http-core 734", "TLS that is cut makes a part the whole", nil, "`TestEndOfTLS` (http1): " + failed},
	{"Origins, TLS, HTTP/2", "apache/trafficserver 3742, golang/go 23841", "of several addresses, a dead one is used again and again", nil, "`TestAddressesThatFail` (http1): " + failed},
	{"HTTP semantics", "golang/go 24595", "what was fresh before a suspend is fresh after it", nil, "`TestSuspended` (engine): " + failed},
	{"Large files and ranges", "rpm-software-management/librepo (zchunk)", "256 ranges get the whole, again and again", nil, "`TestSeveralRanges` (engine): " + failed},
	{"Disks", "users of nginx: `rm -rf` of a cache in use", "the store's directory is gone, and nobody is told", nil, "`TestDirectoryRemoved` (diskstore): " + failed},
	{"Membership and networks", "hashicorp/consul 2822", "bound to a second address, it sends from the first, and is refused", nil, "`TestSecondaryAddresses` (peer): " + failed},
	{"Membership and networks", "hashicorp/nomad 9257", "a link-local address with a zone is accepted, and nobody finds it", nil, "`TestMistakes` (config): " + failed},
	{"Configuration and logs", "cockroachdb/cockroach 81740, moby/moby 31540, containerd/containerd 12462", "who reads standard error stops, and all requests stop", nil, "`TestLossy` (peer): " + failed},
	{"Configuration and logs", "hashicorp/consul 1798, 3554", "who reads standard error ends, and the process with it", nil, "`TestReadersOfLogsGoAway` (peer): " + failed},
	{"Configuration and logs", "stefanprodan/podinfo 14, open-feature/open-feature-operator 431", "a Kubernetes service of its name keeps it from starting", nil, "`TestStrays` (config): " + failed},
	{"Configuration and logs", "CVE-2025-62168, squid-cache/squid", "a password of a URL is in the log", nil, "`TestNoPasswords` (accesslog): " + failed},
	{"Configuration and logs", "many users, of all proxies", "a proxy is its own origin, and its configuration is good", nil, "`TestMistakes` (config): " + failed},
	{"Overload and limits", "scanners that speak HTTP/0.9", "half a line waits for a timeout", nil, "`TestAtOnce` (conn): " + failed},
}
