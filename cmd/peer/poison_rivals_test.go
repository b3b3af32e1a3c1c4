//go:build unix

package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var mutationPage = flag.String("mutation-page", "", "send the mutated requests to nginx, Varnish and Squid as well, and write REQUESTS.md with what they change to this file")

// TestMutatedRequestsOfRivals sends the same mutated requests to nginx, Varnish and Squid with caching
// on, and writes a page of who is changed by what.
func TestMutatedRequestsOfRivals(t *testing.T) {
	if *mutationPage == "" || *mutations == 0 {
		t.Skip("writes a page: -mutations 2000 -mutation-page REQUESTS.md")
	}
	var caches []*poisoning
	for _, start := range []func(*testing.T, []*place) *poisonCache{poisonPeers, poisonNginx, poisonVarnish, poisonSquid} {
		p := &poisoning{places: poisonPlaces(t, true, false), again: "-run 'MutatedRequestsOfRivals$' -v -mutation-page /dev/null"}
		p.cache = start(t, p.places)
		p.send(t)
		t.Logf("%s: %d mutated requests, %d reached an origin, %s", p.cache.name, p.tried, p.reached, p.report())
		caches = append(caches, p)
	}
	page, err := os.ReadFile("REQUESTS.md")
	if err != nil {
		t.Fatal(err)
	}
	before, after := regexp.MustCompile(`(?s)^.*\n<!-- generated -->\n\n`).Find(page), regexp.MustCompile(`(?s)\n<!-- end -->.*$`).Find(page)
	if before == nil || after == nil {
		t.Fatal("REQUESTS.md has no part that is generated")
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(*mutationPage), 0o755),
		os.WriteFile(*mutationPage, []byte(string(before)+poisonTable(caches)+string(after)), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// poisonTable counts the mutated requests that changed something, by kind and cache.
func poisonTable(caches []*poisoning) string {
	kinds, counts := []string{}, make(map[string]map[string]map[int]bool) // by kind and cache: numbers
	head, line := "| mutation, and what others got |", "|---|"
	for _, p := range caches {
		head, line = head+" "+p.cache.name+" |", line+"---:|"
		for _, f := range p.found {
			kind := f.kind()
			if counts[kind] == nil {
				counts[kind] = make(map[string]map[int]bool)
				kinds = append(kinds, kind)
			}
			if counts[kind][p.cache.name] == nil {
				counts[kind][p.cache.name] = make(map[int]bool)
			}
			counts[kind][p.cache.name][f.a.n] = true
		}
	}
	slices.Sort(kinds)
	out := head + "\n" + line + "\n"
	row := func(name string, cell func(p *poisoning) int) {
		out += "| " + name + " |"
		for _, p := range caches {
			out += fmt.Sprintf(" %d |", cell(p))
		}
		out += "\n"
	}
	for _, kind := range kinds {
		row(kind, func(p *poisoning) int { return len(counts[kind][p.cache.name]) })
	}
	row("requests sent", func(p *poisoning) int { return p.tried })
	row("of which an origin saw", func(p *poisoning) int { return p.reached })
	return out
}

// kind is a row of the page: a mutation and a class of what it changes.
func (f finding) kind() string {
	kinds := f.a.Kinds()
	if strings.Contains(kinds, "+") {
		kinds = "several together"
	}
	switch what := f.what; {
	case f.where == "the origin":
		return kinds + ": the origin counts as failing"
	case strings.Contains(f.detail, "victim"):
		return kinds + ": another's page"
	case strings.HasPrefix(what, "status 4") || strings.HasPrefix(what, "status 5"):
		return kinds + ": an error"
	default:
		return kinds + ": another answer"
	}
}

// poisonNginx is an nginx that caches, a server for each place.
func poisonNginx(t *testing.T, places []*place) *poisonCache {
	t.Helper()
	free, addrs, addrs2 := freeAddrs(t, 2*len(places)), make(map[string]string), make(map[string]string)
	text := "proxy_cache_path " + t.TempDir() + " keys_zone=c:10m; proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_set_header Host $host;\n"
	for i, p := range places {
		addrs[p.name], addrs2[p.name] = free[2*i], free[2*i+1]
		valid, cookies := "", ""
		if strings.HasSuffix(p.name, "-unstated.test") {
			valid, cookies = "proxy_cache_valid 200 301 1h; proxy_cache_valid any 30s;", "proxy_no_cache $http_cookie; proxy_cache_bypass $http_cookie;"
		}
		pass := "proxy_pass http://" + p.relay.addr + ";"
		text += fmt.Sprintf("server { listen %[1]s default_server; listen %[2]s http2 default_server; return 421; }\nserver { listen %[1]s; listen %[2]s http2; server_name %[3]s; proxy_cache c;\n", addrs[p.name], addrs2[p.name], p.name)
		for _, under := range slices.Compact([]string{"", p.under}) {
			text += fmt.Sprintf("location ^~ %[1]s/account { proxy_cache off; %[2]s }\nlocation %[1]s/static/ { %[3]s %[2]s }\n", under, pass, valid)
		}
		text += fmt.Sprintf("location ~ \\.css$ { %[2]s %[1]s }\nlocation / { %[2]s %[3]s %[1]s } }\n", pass, valid, cookies)
	}
	startNginx(t, addrs[places[0].name], text)
	return rival("nginx", addrs, addrs2, "Server")
}

// poisonVarnish is a Varnish with its built-in rules, and those that a site adds for its pages.
func poisonVarnish(t *testing.T, places []*place) *poisonCache {
	t.Helper()
	varnishd := program(t, "varnishd")
	free, addrs := freeAddrs(t, len(places)), make(map[string]string)
	dir, err := os.MkdirTemp("", "varnish") // short, and open to the user that it runs as
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	os.Chmod(dir, 0o755)
	text, recv := "vcl 4.1;\n", ""
	command := []string{varnishd, "-F", "-n", dir, "-f", filepath.Join(dir, "default.vcl"), "-s", "default,256m", "-t", "3600", "-p", "feature=+http2"}
	for i, p := range places {
		addrs[p.name] = free[i]
		host, port, _ := net.SplitHostPort(p.relay.addr)
		text += fmt.Sprintf("backend b%d { .host = %q; .port = %q; }\n", i, host, port)
		recv += fmt.Sprintf("	if (local.socket == \"s%[1]d\") { set req.backend_hint = b%[1]d; }\n", i)
		command = append(command, "-a", fmt.Sprintf("s%d=%s,HTTP", i, addrs[p.name]))
	}
	text += "sub vcl_recv {\n" + recv + `	if (req.url ~ "^(/app.cgi)?/account") { return (pass); }
	if (req.url ~ "^(/app.cgi)?/static/" || req.url ~ "\.css(\?|$)") { unset req.http.Cookie; }
}
`
	if err := os.WriteFile(filepath.Join(dir, "default.vcl"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	startServer(t, addrs[places[0].name], command...)
	return rival("Varnish", addrs, addrs, "X-Varnish", "Accept-Ranges")
}

// poisonSquid is a Squid as an accelerator, a port for each place.
func poisonSquid(t *testing.T, places []*place) *poisonCache {
	t.Helper()
	free, addrs := freeAddrs(t, len(places)), make(map[string]string)
	lines := []string{"never_direct allow all", "acl private urlpath_regex ^(/app.cgi)?/account", "cache deny private",
		`refresh_pattern ^[a-z]*://[^/]*(/app.cgi)?/static/ 60 20% 4320`, `refresh_pattern \.css(\?|$) 60 20% 4320`, "refresh_pattern . 0 20% 4320"}
	for i, p := range places {
		addrs[p.name] = free[i]
		host, port, _ := net.SplitHostPort(p.relay.addr)
		lines = append(lines, fmt.Sprintf("http_port %s accel no-vhost defaultsite=%s name=s%d", addrs[p.name], p.name, i),
			fmt.Sprintf("cache_peer %s parent %s 0 no-query no-digest originserver name=o%d", host, port, i),
			fmt.Sprintf("acl at%[1]d myportname s%[1]d\ncache_peer_access o%[1]d allow at%[1]d", i))
	}
	startSquid(t, squidSetup{addr: addrs[places[0].name], whole: lines})
	return rival("Squid", addrs, nil, "X-Cache", "X-Cache-Lookup", "Cache-Status")
}

// rival is a cache without siblings, of which nothing is known but its answers. own are fields that
// it adds or replaces.
func rival(name string, addrs, addrs2 map[string]string, own ...string) *poisonCache {
	return &poisonCache{
		name: name, own: own, settle: func() {},
		addr: func(p *place, h2 bool) string {
			if h2 {
				return addrs2[p.name]
			}
			return addrs[p.name]
		},
	}
}
