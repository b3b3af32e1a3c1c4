package caddy

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

type fields = map[string]any

// A site is a listener on a free port that a server of Caddy takes over, since the number of the port
// must be known before Caddy starts.
type site struct{ addr, listen string }

func newSite(t *testing.T) site {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	t.Cleanup(func() { f.Close() })
	return site{l.Addr().String(), fmt.Sprintf("fd/%d", f.Fd())}
}

// server returns the configuration of a server whose answers contain its name.
func server(s site, name string, join ...string) fields {
	return fields{
		"listen": []string{s.listen}, "protocols": []string{"h1"}, "automatic_https": fields{"disable": true},
		"routes": []fields{{"handle": []fields{
			{"handler": "summarycache", "name": name, "gossip": "127.0.0.1:0", "service": s.addr, "join": join, "secret": "at least 16 bytes, better random"},
			{"handler": "static_response", "body": "made by " + name, "headers": fields{"Cache-Control": []string{"public, max-age=600"}}},
		}}},
	}
}

// load replaces the servers that Caddy runs.
func load(t *testing.T, servers fields) {
	t.Helper()
	config, err := json.Marshal(fields{
		"admin":   fields{"disabled": true, "config": fields{"persist": false}},
		"logging": fields{"logs": fields{"default": fields{"level": "ERROR"}}},
		"apps":    fields{"http": fields{"grace_period": "1s", "servers": servers}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := caddy.Load(config, true); err != nil {
		t.Fatal(err)
	}
}

// handler returns the running module of a server.
func handler(t *testing.T, name string) *Handler {
	t.Helper()
	app, err := caddy.ActiveContext().App("http")
	if err != nil {
		t.Fatal(err)
	}
	return app.(*caddyhttp.App).Servers[name].Routes[0].Handlers[0].(*Handler)
}

// get requests the object from a server.
func get(t *testing.T, s site, cacheControl string) (status int, body, cacheStatus string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, "http://"+s.addr+"/x?y=%7e", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "site.example" // the same at both
	if cacheControl != "" {
		r.Header.Set("Cache-Control", cacheControl)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	cached, _, _ := strings.Cut(resp.Header.Get("Cache-Status"), "; ttl=") // which depends on the time
	return resp.StatusCode, string(b), cached
}

// Two servers in one Caddy: the second gets objects from the first, also after a reload, and neither
// makes an object for a sibling.
func TestTwoCaddies(t *testing.T) {
	a, b := newSite(t), newSite(t)
	t.Cleanup(func() { caddy.Stop(); http.DefaultClient.CloseIdleConnections() })
	load(t, fields{"a": server(a, "a")})
	if code, _, status := get(t, a, "only-if-cached"); code != http.StatusGatewayTimeout || status != "a; detail=only-if-cached" {
		t.Errorf("a lookup request for an object that is not there: %d, %s", code, status)
	}
	if code, body, status := get(t, a, ""); code != 200 || body != "made by a" || status != "a; fwd=uri-miss; fwd-status=200; stored" {
		t.Errorf("the first request: %d %q, %s", code, body, status)
	}
	addr := handler(t, "a").node.Addr()
	load(t, fields{"a": server(a, "a"), "b": server(b, "b", addr)}) // a keeps what it has
	if code, body, status := get(t, a, ""); code != 200 || body != "made by a" || status != "a; hit" {
		t.Errorf("after a reload: %d %q, %s", code, body, status)
	}
	h := handler(t, "b")
	until := time.After(20 * time.Second)
	for tick := time.Tick(10 * time.Millisecond); len(h.node.Candidates(nil, "GET http://site.example/x?y=%7e")) == 0; {
		select {
		case <-tick:
		case <-until:
			t.Fatal("b has not received the digest of a")
		}
	}
	if code, body, status := get(t, b, ""); code != 200 || body != "made by a" || status != "a; hit" {
		t.Errorf("at the sibling: %d %q, %s", code, body, status)
	}
	if code, body, status := get(t, b, ""); code != 200 || body != "made by a" || status != "b; hit" {
		t.Errorf("after that: %d %q, %s", code, body, status)
	}
	if code, body, _ := get(t, b, "no-cache"); code != 200 || body != "made by b" {
		t.Errorf("with no-cache: %d %q", code, body)
	}
	if s := h.Siblings.Stats(); s.Asked != 1 || s.Hits != 1 {
		t.Errorf("siblings: %+v", s)
	}
}
