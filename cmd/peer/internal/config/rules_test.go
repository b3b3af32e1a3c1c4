package config

import (
	"strings"
	"testing"
	"time"
)

func TestRuleMistakes(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no list":                {"rules:\n  ttl: 1h\n", `peer.yaml:1: rules wants a list`},
		"an item of text":        {"rules:\n  - ttl 1h\n", `peer.yaml:2: an item of rules wants lines of the form key: value`},
		"unknown key":            {"rules:\n  - path: /x\n    tll: 1h\n", `peer.yaml:3: unknown key "tll", did you mean "ttl"?`},
		"does nothing":           {"rules:\n  - path: /x\n", `peer.yaml:2: the rule has conditions but no effect`},
		"time without a unit":    {"rules:\n  - ttl: 60\n", `peer.yaml:2: ttl "60" is not a time`},
		"part of a second":       {"rules:\n  - ttl: 1500ms\n", `is not in whole seconds`},
		"no path":                {"rules:\n  - path: static\n    ttl: 1h\n", `path "static" is not a path`},
		"no sites":               {"name: x\nsites: []\n", `peer.yaml:2: sites is empty: leave it out for a forward proxy`},
		"a query in a path":      {"rules:\n  - path: /search?nocache=1\n    bypass: true\n", `peer.yaml:2: path "/search?nocache=1" has a ?: paths are compared without the query. query-keep and query-drop`},
		"an escape in a path":    {"rules:\n  - path: /caf%C3%A9%20x/*\n    deny: true\n", `path "/caf%C3%A9%20x/*" matches nothing, since paths are compared decoded: want "/café*x/*"`},
		"dots in a path":         {"rules:\n  - path: /a/../b\n    ttl: 1h\n", `path "/a/../b" matches nothing`},
		"slashes in a path":      {"rules:\n  - path: //static/*\n    ttl: 1h\n", `path "//static/*" matches nothing`},
		"a parameter in a path":  {"rules:\n  - path: /a;v=*\n    ttl: 1h\n", `path "/a;v=*" matches nothing`},
		"a cookie's value":       {"rules:\n  - cookie: session=abc\n    bypass: true\n", `cookie "session=abc" matches nothing: want the name of a cookie`},
		"a kept cookie's value":  {"rules:\n  - cookies-keep: lang=de\n", `cookies-keep "lang=de" matches nothing`},
		"a parameter's value":    {"rules:\n  - query-drop: debug=1\n", `query-drop "debug=1" matches nothing`},
		"no header":              {"rules:\n  - header: \"X-A:\"\n    bypass: true\n", `header "X-A:" is not a name or pattern`},
		"no media type":          {"rules:\n  - type: html\n    ttl: 1h\n", `type "html" matches nothing: want a media type`},
		"a URL for a site":       {"rules:\n  - site: http://a.test\n    ttl: 1h\n", `site "http://a.test" matches nothing`},
		"a URL to follow":        {"rules:\n  - follow: http://a.test\n", `follow "http://a.test" matches nothing`},
		"a pattern in the key":   {"rules:\n  - key: cookie.*\n", `key "cookie.*" names one field or cookie`},
		"a fragment in a path":   {"rules:\n  - path: /a#b\n    bypass: true\n", `path "/a#b" has a #`},
		"no status":              {"rules:\n  - status: [404, 6xx]\n    ttl: 1h\n", `status "6xx" is not a status`},
		"status backwards":       {"rules:\n  - status: 504-500\n    ttl: 1h\n", `status "504-500" is not a status`},
		"neither yes nor no":     {"rules:\n  - bypass: yes\n", `bypass "yes" is neither true nor false`},
		"late bypass":            {"rules:\n  - status: 404\n    bypass: true\n", `bypass is decided before there is an answer`},
		"cookie rule":            {"rules:\n  - set-cookie: stoer\n", `set-cookie "stoer" is none of refuse, store, drop, did you mean "store"?`},
		"bounds":                 {"rules:\n  - min-ttl: 2h\n    max-ttl: 1h\n", `min-ttl "2h" is more than max-ttl`},
		"keep and drop":          {"rules:\n  - query-keep: q\n    query-drop: r\n", `query-drop cannot be combined with query-keep`},
		"no coding":              {"rules:\n  - compress: [zstd, gzpi]\n", `compress "gzpi" is none of zstd, gzip, did you mean "gzip"?`},
		"late coding":            {"rules:\n  - type: text/*\n    compress: gzip\n", `compress is decided before there is an answer`},
		"unknown coding":         {"rules:\n  - encodings: [br, gzpi]\n", `encodings "gzpi" is none of br, zstd, gzip, deflate, compress, did you mean "gzip"?`},
		"no such site":           {"rules:\n  - site: b.test\n    ttl: 1h\nsites:\n  - hosts: a.test\n    origins: http://o\n", `peer.yaml:2: site "b.test" is not a host of a site`},
		"not the origin":         {"origin: http://o:8080\nrules:\n  - site: shop.test\n    ttl: 1h\n", `peer.yaml:3: site "shop.test" is not a host of a site`},
		"host of a name":         {"rules:\n  - site: [shop, a.test]\n    ttl: 1h\nsites:\n  - hosts: a.test\n    name: shop\n    origins: http://o\n", `site "a.test" is not a host of a site: a site with a name is meant by its name`},
		"host with port":         {"sites:\n  - hosts: a.test:443\n    origins: http://o\n", `hosts "a.test:443" must not have this port`},
		"no status of redirects": {"rules:\n  - redirect: 200 /x\n", `redirect "200 /x" has a status that is none of 301`},
		"any host":               {"rules:\n  - path: /a*\n    redirect: https://a.test*\n", `which must be in its path`},
		"no place":               {"rules:\n  - redirect: x\n", `redirect "x" is neither an http or https URL`},
		"host of the client":     {"rules:\n  - redirect: https://{uri}\n", `is neither an http or https URL`},
		"nothing captured":       {"rules:\n  - path: [/a/*, /b]\n    redirect: /c/*\n", `has a *: then each path of the rule needs one, too`},
		"unknown scheme":         {"origin: http://o\nrules:\n  - scheme: http\n    redirect: https://{host}{uri}\n", `scheme "http" needs --https or --trusted-proxies`},
		"late redirect":          {"rules:\n  - status: 404\n    redirect: /x\n", `redirect is decided before there is an answer`},
		"no field":               {"rules:\n  - request-header: X-A\n", `request-header "X-A" is no change of a header field`},
		"its own setting":        {"rules:\n  - request-header: -Cookie\n", `request-header "-Cookie" is a field that has its own setting: use cookies-keep`},
		"field of the peer":      {"rules:\n  - response-header: content-length 5\n", `is a field that the peer itself writes and reads`},
		"forwarded":              {"rules:\n  - request-header: X-Forwarded-Proto https\n", `is a field that the peer itself writes and reads`},
		"ttl by client":          {"origin: http://o\nrules:\n  - client: 10.0.0.0/8\n    ttl: 1h\n", `ttl cannot depend on the client's address`},
		"no network":             {"origin: http://o\nrules:\n  - client: office\n    deny: true\n", `client "office"`},
		"list without brackets":  {"join: 10.0.0.1:7946,10.0.0.2:7946\n", `in the file a list is written in brackets`},
		"personal rewrite":       {"origin: http://o\nrules:\n  - cookie: beta\n    rewrite: /b\n", `rewrite cannot depend on a cookie or header`},
		"no origin":              {"rules:\n  - rewrite: /b\n", `rewrite is for a reverse proxy`},
		"dots":                   {"origin: http://o\nrules:\n  - path: /a*\n    rewrite: /b/../*\n", `is not a path with at most one *, in normal form`},
		"any failure":            {"rules:\n  - failover: true\n", `failover needs the status`},
		"no rate":                {"rules:\n  - rate: 10/s\n", `rate "10/s" is not a rate up to 1000000r/s`},
		"no size":                {"rules:\n  - max-body: 10M\n", `max-body "10M"`},
		"no such value":          {"rules:\n  - response-header: X-Cache {hit}\n", `peer.yaml:2: response-header "X-Cache {hit}" has {hit}: unknown name hit`},
		"too early a value":      {"rules:\n  - request-header: X-Cache {outcome}\n", `has a value of the answer, which there is not yet: {outcome}`},
		"late expression":        {"rules:\n  - when: status == 404\n    bypass: true\n", `peer.yaml:3: bypass is decided before there is an answer`},
		"client's expression":    {"origin: http://o\nrules:\n  - when: client == \"10.0.0.1\"\n    ttl: 1h\n", `ttl cannot depend on the client's address`},
		"a key of one's own":     {"rules:\n  - when: '!(\"a\" in cookie)'\n    query-drop: [utm_*]\n", `query-drop cannot depend on a cookie or on fields other than`},
		"own field in a key":     {"rules:\n  - header: X-Mobile\n    encodings: gzip\n", `encodings cannot depend on a cookie or on fields`},
		"rewrite for one":        {"origin: http://o\nrules:\n  - when: header[\"X-Beta\"] == \"1\"\n    rewrite: /b\n", `rewrite cannot depend on a cookie or header`},
		"outcome and lifetime":   {"rules:\n  - when: outcome == \"hit\"\n    ttl: 1h\n", `ttl cannot depend on the outcome`},
		"no request has it":      {"rules:\n  - header: X-Real-IP\n    bypass: true\n", `peer.yaml:2: header "X-Real-Ip" is dropped from requests, since some origins take it for client: use --pass-field`},
		"nor this":               {"rules:\n  - bypass: true\n    when: header[\"X_Preview\"] != \"\"\n", `peer.yaml:3: when "X_preview" is dropped from requests`},
		"of the connection":      {"rules:\n  - bypass: true\n    header: Upgrade\n", `is a field of the connection`},
		"nobody":                 {"rules:\n  - client: []\n    rate: 1r/s\n", `peer.yaml:2: client is empty: the rule would match nothing`},
		"nothing instead":        {"rules:\n  - ignore-origin: [cache-control, expires]\n", `peer.yaml:2: ignore-origin needs a ttl in the same rule`},
		"whole cookie as key":    {"rules:\n  - key: header.cookie\n", `has all cookies: use cookie.NAME`},
		"no part of a key":       {"rules:\n  - key: accept\n", `key "accept" is no part of a key: want header.NAME or cookie.NAME`},
		"coding as key":          {"rules:\n  - key: header.accept-encoding\n", `has its own setting: use encodings`},
		"dropped key":            {"rules:\n  - key: [header.accept, header.x-real-ip]\n", `peer.yaml:2: key "X-Real-Ip" is dropped from requests`},
		"dropped cookie":         {"rules:\n  - key: cookie.currency\n    cookies-keep: [lang]\n", `key "currency" is a cookie that cookies-keep removes`},
		"late key":               {"rules:\n  - key: header.accept\n    status: 200\n", `key is decided before there is an answer`},
		"no day":                 {"rules:\n  - ttl: 1.5d\n", `ttl "1.5d" is not a time`},
		"page for everything":    {"rules:\n  - error-page: /dev/null\n", `error-page`},
		"no such page":           {"rules:\n  - status: 5xx\n    error-page: /nowhere/x.html\n", `peer.yaml:3: error-page "/nowhere/x.html" cannot be read`},
		"no use":                 {"rules:\n  - min-uses: 0\n", `min-uses "0" is not a whole number between 1 and 1000`},
		"a list in one text":     {"rules:\n  - query-drop: a, b\n", `query-drop "a, b" is not one item: in the file a list is written in brackets`},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := load(t, "--config", write(t, "peer.yaml", c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s\n= %v, want %q", c.text, err, c.want)
			}
		})
	}
	if _, _, err := load(t, "--default-ttl", "1500ms"); err == nil || !strings.Contains(err.Error(), "is not in whole seconds") {
		t.Errorf("--default-ttl 1500ms = %v", err)
	}
}

// A rule may be for some of the hosts or names of the sites.
func TestRulesOfSites(t *testing.T) {
	for _, text := range []string{"origin: http://o:8080\nrules:\n  - site: o\n    ttl: 1h\n", "origin: http://o\npreserve-host: on\nrules:\n  - site: shop.test\n    ttl: 1h\n", "rules:\n  - site: any.test\n    ttl: 1h\n"} {
		if _, _, err := load(t, "--config", write(t, "peer.yaml", text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, site := range []string{"a.test", "*.test", "b.wild.test", "*.wild.test", "shop", "*"} {
		if _, _, err := load(t, "--config", write(t, "peer.yaml", "rules:\n  - site: '"+site+"'\n    ttl: 1h\nsites:\n  - hosts: a.test\n    origins: http://o\n"+
			"  - hosts: '*.wild.test'\n    origins: http://o\n  - name: shop\n    hosts: c.test\n    origins: http://o\n")); err != nil {
			t.Errorf("%s: %v", site, err)
		}
	}
}

func TestCompress(t *testing.T) {
	c, _, err := load(t, "--compress", "zstd,gzip")
	if r := c.Rules; err != nil || len(r) != 1 || r[0].Name != "compress" || strings.Join(r[0].Compress, " ") != "zstd gzip" {
		t.Errorf("%+v, %v", r, err)
	}
	if _, _, err := load(t, "--compress", "br"); err == nil || !strings.Contains(err.Error(), `--compress "br" is none of zstd, gzip`) {
		t.Errorf("--compress br = %v", err)
	}
}

// A lifetime that could never apply is a mistake.
func TestRuleForCookies(t *testing.T) {
	_, _, err := load(t, "--config", write(t, "peer.yaml", "rules:\n  - cookie: session\n    ttl: 1h\n"))
	if err == nil || !strings.Contains(err.Error(), "never applies to a request with a cookie") || !strings.Contains(err.Error(), "peer.yaml:3") {
		t.Errorf("ttl for a cookie = %v", err)
	}
}

func TestRules(t *testing.T) {
	c, effective, err := load(t, "--default-ttl", "60s", "--config", write(t, "peer.yaml", `
rules:
  - path: [/static/*, "*.css"]
    ttl: 7d
  - cookies-keep: []
    query-sort: true
`))
	if err != nil || len(c.Rules) != 3 {
		t.Fatalf("%+v, %v", c.Rules, err)
	}
	if r := c.Rules[0]; r.Name != "1" || !strings.HasSuffix(r.Where, "peer.yaml:3") || len(r.Paths) != 2 || *r.TTL != 7*24*time.Hour {
		t.Errorf("%+v", r)
	}
	if r := c.Rules[1]; r.CookiesKeep == nil || len(r.CookiesKeep) != 0 || !*r.QuerySort {
		t.Errorf("%+v", r)
	}
	if r := c.Rules[2]; r.Name != "default-ttl" || *r.TTL != time.Minute {
		t.Errorf("%+v", r)
	}
	var shown string
	for _, e := range effective {
		if e.Name == "rules" {
			shown = e.Value
		}
	}
	if want := "path: [/static/*, *.css], ttl: 7d\ncookies-keep: [], query-sort: true"; shown != want {
		t.Errorf("shown as %q, want %q", shown, want)
	}
}
