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
    ttl: 1h
  - cookies-keep: []
    query-sort: true
`))
	if err != nil || len(c.Rules) != 3 {
		t.Fatalf("%+v, %v", c.Rules, err)
	}
	if r := c.Rules[0]; r.Name != "1" || !strings.HasSuffix(r.Where, "peer.yaml:3") || len(r.Paths) != 2 || *r.TTL != time.Hour {
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
	if want := "path: [/static/*, *.css], ttl: 1h\ncookies-keep: [], query-sort: true"; shown != want {
		t.Errorf("shown as %q, want %q", shown, want)
	}
}
