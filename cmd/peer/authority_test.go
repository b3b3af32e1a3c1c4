//go:build unix

package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
)

var needProxies = flag.Bool("proxies", false, "fail where nginx, haproxy or varnishd is not installed, instead of skipping")

// frontProxies are proxies on the machine of a peer as people configure them, some with fields by which they show themselves, some without. Each
// is started before an address, and returns its own.
var frontProxies = []struct {
	name  string
	shows bool // itself, by a field
	start func(t *testing.T, to string) string
}{
	{"a relay of bytes", false, relayOfBytes},
	{"nginx", false, func(t *testing.T, to string) string {
		return frontNginx(t, "proxy_pass http://"+to+"; proxy_set_header Host "+to+";")
	}},
	{"nginx with X-Forwarded-For", true, func(t *testing.T, to string) string {
		return frontNginx(t, "proxy_pass http://"+to+"; proxy_set_header Host "+to+"; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;")
	}},
	{"nginx with X-Real-IP", true, func(t *testing.T, to string) string {
		return frontNginx(t, "proxy_pass http://"+to+"; proxy_set_header Host "+to+"; proxy_set_header X-Real-IP $remote_addr;")
	}},
	{"HAProxy", false, func(t *testing.T, to string) string { return frontHAProxy(t, to, "mode http") }},
	{"HAProxy with forwardfor", true, func(t *testing.T, to string) string { return frontHAProxy(t, to, "mode http\n option forwardfor") }},
	{"HAProxy for TCP", false, func(t *testing.T, to string) string { return frontHAProxy(t, to, "mode tcp") }},
	{"Varnish", true, func(t *testing.T, to string) string { return frontVarnish(t, to, "return (pass);") }},
	{"Varnish that pipes", true, func(t *testing.T, to string) string { return frontVarnish(t, to, "return (pipe);") }},
}

func relayOfBytes(t *testing.T, to string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				up, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				defer up.Close()
				go func() { io.Copy(up, c); up.(*net.TCPConn).CloseWrite() }()
				io.Copy(c, up)
			}()
		}
	}()
	return l.Addr().String()
}

func frontNginx(t *testing.T, location string) string {
	addr := freeAddr(t)
	startNginx(t, addr, fmt.Sprintf("server { listen %s; location / { %s } }", addr, location))
	return addr
}

func frontHAProxy(t *testing.T, to, options string) string {
	binary := program(t, "haproxy")
	if binary == "" {
		t.Skip("haproxy is not installed")
	}
	addr, conf := freeAddr(t), filepath.Join(t.TempDir(), "haproxy.cfg")
	text := fmt.Sprintf("defaults\n timeout connect 5s\n timeout client 20s\n timeout server 20s\nlisten front\n bind %s\n %s\n server peer %s\n", addr, options, to)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	startServer(t, addr, binary, "-db", "-f", conf)
	return addr
}

func frontVarnish(t *testing.T, to, recv string) string {
	binary := program(t, "varnishd")
	if binary == "" {
		t.Skip("varnishd is not installed")
	}
	dir, err := os.MkdirTemp("", "varnish") // short, and open to the user that it runs as
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	os.Chmod(dir, 0o755)
	host, port, _ := net.SplitHostPort(to)
	vcl := fmt.Sprintf("vcl 4.1;\nbackend b { .host = %q; .port = %q; }\nsub vcl_recv { set req.http.Host = %q; %s }\n", host, port, to, recv)
	if err := os.WriteFile(filepath.Join(dir, "default.vcl"), []byte(vcl), 0o644); err != nil {
		t.Fatal(err)
	}
	addr := freeAddr(t)
	startServer(t, addr, binary, "-F", "-n", dir, "-a", addr, "-f", filepath.Join(dir, "default.vcl"), "-s", "default,64m", "-t", "0")
	return addr
}

// A peer with a page that it stores, and its origin.
type guarded struct {
	started
	origin *httptest.Server
	asked  atomic.Int64
}

func newGuarded(t *testing.T, more ...string) *guarded {
	g := new(guarded)
	g.origin = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.asked.Add(1)
		w.Header().Set("Cache-Control", "max-age=600")
	}))
	t.Cleanup(g.origin.Close)
	g.started = inProcess(t, local(t, "a", append([]string{"--origin", g.origin.URL}, more...)...))
	return g
}

// stored reports whether the page was stored, and has it stored in any case.
func (g *guarded) stored(t *testing.T) bool {
	t.Helper()
	before := g.asked.Load()
	send(t, g.listen, "GET", "/page", "", nil)
	was := g.asked.Load() == before
	g.started.stored(t, 1) // it is sent before it is
	return was
}

// send sends a request from an address of loopback that is nobody's, and returns the answer's status and text.
func send(t *testing.T, addr, method, target, body string, fields []string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr+target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		r.Header.Set(name, value)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// TestAProxyIsNotTheOperator: what comes through a proxy on the peer's own machine changes nothing, whether the proxy shows itself or
// not, and whatever the client claims. With a token it does at the admin port, if the proxy shows nothing.
func TestAProxyIsNotTheOperator(t *testing.T) {
	tokenFile := filepath.Join(t.TempDir(), "token")
	const token = "0123456789abcdef of operators"
	if err := os.WriteFile(tokenFile, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newGuarded(t, "--admin-token-file", tokenFile, "--purge-client", "192.0.2.0/24")
	claims := [][]string{nil, {"X-Forwarded-For: 192.0.2.7"}, {"Forwarded: for=192.0.2.7"}, {"X-Real-IP: 192.0.2.7"}, {"Authorization: Bearer " + token[:16]}}
	for _, proxy := range frontProxies {
		t.Run(proxy.name, func(t *testing.T) {
			front, back := proxy.start(t, p.listen), proxy.start(t, p.admin)
			p.stored(t)
			for _, c := range claims {
				for _, of := range []struct{ addr, method, target, body string }{
					{front, "PURGE", "/page", ""}, {back, "POST", "/purge", `{"url":"/page","everywhere":true}`},
					{back, "POST", "/reload", "{}"}, {back, "POST", "/session", "{}"},
				} {
					code, text := send(t, of.addr, of.method, of.target, of.body, c)
					if code < 400 || code == http.StatusNotFound || code >= 500 || !p.stored(t) {
						t.Errorf("%s %s %v = %d %s", of.method, of.target, c, code, text)
					}
					if proxy.shows && !strings.Contains(text, "prox") {
						t.Errorf("%s %s %v = %d %s: the refusal does not speak of the proxy", of.method, of.target, c, code, text)
					}
				}
			}
			code, text := send(t, back, "POST", "/purge", `{"url":"/page"}`, []string{"Authorization: Bearer " + token})
			if done := code == http.StatusOK && !p.stored(t); done == proxy.shows {
				t.Errorf("POST /purge with the token = %d %s", code, text)
			}
		})
	}
}

// TestAForwardProxyIsItsMachines: who comes to a forward proxy through another proxy that shows itself is no user of its machine.
func TestAForwardProxyIsItsMachines(t *testing.T) {
	closed, named := inProcess(t, local(t, "a")), inProcess(t, local(t, "b", "--proxy-client", "127.0.0.1"))
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Cache-Control", "max-age=600") }))
	defer origin.Close()
	for _, tt := range []struct {
		name, addr, options string
		want                string
	}{
		{"shows itself", closed.listen, "mode http\n option forwardfor", "403"},
		{"shows itself, and is named", named.listen, "mode http\n option forwardfor", "200"},
		{"shows nothing", closed.listen, "mode http", "200"}, // which no peer can tell from a user of its machine
	} {
		front := frontHAProxy(t, tt.addr, tt.options)
		for _, line := range []string{"GET " + origin.URL + "/x HTTP/1.1\r\nHost: " + origin.Listener.Addr().String() + "\r\nConnection: close\r\n\r\n"} {
			c, err := net.Dial("tcp", front)
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(c, line)
			answer, _ := io.ReadAll(c)
			c.Close()
			if !strings.HasPrefix(string(answer), "HTTP/1.1 "+tt.want) {
				t.Errorf("%s: %q = %q, want %s", tt.name, line, answer, tt.want)
			}
		}
	}
}

// TestTrustedProxiesPurge: through a proxy that the operator named, the client that it names may purge if the operator named that, too.
func TestTrustedProxiesPurge(t *testing.T) {
	p := newGuarded(t, "--trusted-proxies", "127.0.0.1", "--purge-client", "198.51.100.7")
	front := frontNginx(t, "proxy_pass http://"+p.listen+"; proxy_set_header X-Forwarded-For $http_x_client;")
	for client, want := range map[string]int{"198.51.100.7": 200, "198.51.100.8": 403, "127.0.0.1": 403, "": 403} {
		p.stored(t)
		code, text := send(t, front, "PURGE", "/page", "", []string{"X-Client: " + client})
		if code != want || p.stored(t) != (want != 200) {
			t.Errorf("PURGE for %q = %d %s, want %d", client, code, text, want)
		}
	}
}

// TestOperatorsWays: on the peer's machine commands work as ever, by its Unix socket, and a browser gets a token; a proxy at the socket that
// shows itself is refused.
func TestOperatorsWays(t *testing.T) {
	p := newGuarded(t)
	p.stored(t)
	if code, text := send(t, p.admin, "POST", "/purge", `{"url":"/page"}`, nil); code != 401 || !strings.Contains(text, "peer open") {
		t.Errorf("POST /purge over loopback = %d %s", code, text)
	}
	if code, text := send(t, p.listen, "PURGE", "/page", "", nil); code != 405 || !strings.Contains(text, "--purge-client") {
		t.Errorf("PURGE over loopback = %d %s", code, text)
	}
	if !p.stored(t) {
		t.Error("they purged")
	}
	holds(t, words(t, 0, "purge", "/page", "--admin", p.admin), "a 1 done")
	p.stored(t)
	s, err := admin.Client(p.admin).Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	socket := s.Addresses.Socket
	holds(t, words(t, 0, "purge", "/page", "--admin", socket), "a 1 done")
	holds(t, words(t, 0, "reload", "--dry-run", "--admin", socket), "Nothing differs")
	if info, err := os.Stat(socket); err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("the socket: %v, %v", info, err)
	}
	for _, at := range []string{p.admin, socket} {
		var link struct{ URL string }
		if err := json.Unmarshal([]byte(words(t, 0, "open", "--json", "--admin", at)), &link); err != nil {
			t.Fatal(err)
		}
		page, token, _ := strings.Cut(link.URL, "#token=")
		if page != "http://"+p.admin+"/" || len(token) < 20 {
			t.Fatalf("peer open = %s", link.URL)
		}
		p.stored(t)
		if code, text := send(t, p.admin, "POST", "/purge", `{"url":"/page"}`, []string{"Authorization: Bearer " + token}); code != 200 || p.stored(t) {
			t.Errorf("POST /purge with the token of %s = %d %s", link.URL, code, text)
		}
	}
	front := frontNginx(t, "proxy_pass http://unix:"+socket+"; proxy_set_header X-Forwarded-For $remote_addr;")
	if code, text := send(t, front, "POST", "/purge", `{"url":"/page"}`, nil); code != 403 || !p.stored(t) {
		t.Errorf("POST /purge through nginx at the socket = %d %s", code, text)
	}
}

// TestOtherUsersSendNoCommands: another user of the machine may not open the socket, and is told what to do.
func TestOtherUsersSendNoCommands(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	p := newGuarded(t)
	dir, err := os.MkdirTemp("", "peer") // which others may enter
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Skip(err)
	}
	program := filepath.Join(dir, "peer")
	if os.Chmod(dir, 0o755) != nil || os.WriteFile(program, self, 0o755) != nil {
		t.Fatal("the program cannot be copied")
	}
	cmd := exec.CommandContext(t.Context(), program, "purge", "/page", "--admin", p.admin)
	cmd.Dir, cmd.Env = "/", append(os.Environ(), asPeer+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "permission denied: be the peer's user or root, or use --token-file") {
		t.Errorf("peer purge as nobody = %v, %s", err, out)
	}
}
