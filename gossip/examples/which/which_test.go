package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/summarycache/summarycache/gossip"
)

// node returns a member of a cluster.
func node(t *testing.T, name, service string, others ...*gossip.Node) *gossip.Node {
	t.Helper()
	cfg := gossip.Config{Name: name, Bind: "127.0.0.1:0", Secret: []byte("at least 16 bytes, better random"), Service: service, Objects: 1000, Logger: slog.New(slog.DiscardHandler)}
	for _, n := range others {
		cfg.Join = append(cfg.Join, n.Addr())
	}
	n, err := gossip.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	if err := n.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	return n
}

func same(key string) string { return key }

// ask sends a request to a server and returns the status and X-Sibling.
func ask(h http.Handler, method, path, key string) (int, string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path+"?url="+url.QueryEscape(key), nil))
	return w.Code, w.Header().Get("X-Sibling")
}

// What one cache says that it holds, another finds there, until it says otherwise.
func TestWhich(t *testing.T) {
	a := &Server{node(t, "a", "10.0.0.1:80"), same}
	b := &Server{node(t, "b", "10.0.0.2:80", a.Node), same}
	key := "site.example/ä?x=1&y=2"
	wait := func(status int, sibling string) {
		t.Helper()
		var got int
		var at string
		for range 500 {
			if got, at = ask(b, "GET", "/which", key); got == status && at == sibling {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Fatalf("/which: %d %q, want %d %q", got, at, status, sibling)
	}
	wait(404, "")
	ask(a, "PUT", "/holds", key)
	wait(200, "10.0.0.1:80")
	ask(a, "DELETE", "/holds", key)
	wait(404, "")
	for _, c := range []struct{ method, path, key string }{{"GET", "/which", ""}, {"POST", "/holds", "x"}, {"GET", "/", "x"}, {"PUT", "/holds", strings.Repeat("x", longestKey+1)}} {
		if got, _ := ask(a, c.method, c.path, c.key); got != 400 && got != 404 {
			t.Errorf("%s %s of %d bytes: %d", c.method, c.path, len(c.key), got)
		}
	}
}

// Flags that a user gets wrong are named.
func TestFlags(t *testing.T) {
	right := []string{"--listen", "127.0.0.1:0", "--gossip-port", "0", "--cache", "127.0.0.1:80", "--address", "127.0.0.1"}
	for _, c := range []struct {
		args []string
		says string
	}{
		{nil, "--cache"},
		{[]string{"--cache", "10.0.0.1:80"}, "--address"},
		{right, "--secret-file"},
		{append(right, "--varnish", "", "--nginx", "/x"), "not both"},
		{append(right, "--secret-file", "/nonexistent"), "/nonexistent"},
		{append(right, "x"), `unexpected "x"`},
	} {
		if err := run(t.Context(), c.args); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v, want %q", c.args, err, c.says)
		}
	}
}

// What a log says of objects: stored, replaced by another of the same key, evicted, expired, banned, and never shared.
func TestVarnishLog(t *testing.T) {
	stored := func(id, path string) string {
		return fmt.Sprintf("%s BereqURL b %s\n%s BereqHeader b Host: h\n%s TTL b RFC 60 10 0 1 1 1 0 60 cacheable\n%s Storage b malloc s0\n%s End b\n", id, path, id, id, id, id)
	}
	v := &Varnish{Holdings: node(t, "a", "").Holdings()}
	for _, c := range []struct{ log, want string }{
		{stored("1", "/a"), "h/a"},
		{stored("1", "/a") + stored("2", "/b") + "3 ExpKill b LRU_Cand p=0x1 f=0x0 r=1\n3 ExpKill b LRU x=1\n", "h/b"},
		{stored("1", "/a") + stored("2", "/a") + "0 ExpKill - EXP_Expired x=1 t=-0\n", "h/a"},
		{stored("1", "/a") + stored("2", "/a") + "0 ExpKill - EXP_Removed x=1 t=-1 h=3\n0 ExpKill - EXP_Removed x=2 t=-1 h=3\n", ""},
		{stored("1", "/a") + "9 ExpBan c 1 banned lookup\n", ""},
		{"1 BereqURL b /a\n1 BereqHeader b Host: h\n1 TTL b HFM 60 10 0 1 1 1 0 60 uncacheable\n1 Storage b malloc Transient\n1 End b\n", ""},
		{"1 BereqURL b /a\n1 End b\nnonsense\n\n1 Storage b malloc s0\n1 ExpKill b LRU x=99\n1 ExpKill b EXP_Removed\n", ""},
	} {
		v.Holdings.Replace(func(func(string) bool) {})
		v.read(strings.NewReader(c.log))
		for _, key := range []string{"h/a", "h/b"} {
			if got := v.Holdings.Has(key); got != (key == c.want) {
				t.Errorf("%s is held: %v after\n%s", key, got, c.log)
			}
		}
		if c.want == "" && len(v.fetches)+len(v.copies) > 0 {
			t.Errorf("%d fetches and %d keys are left after\n%s", len(v.fetches), len(v.copies), c.log)
		}
	}
}

// A drift compares a digest with what a cache holds.
type drift struct{ held, missing, extra int }

func (d *drift) note(held, digest bool) {
	switch {
	case held && !digest:
		d.missing++
	case digest && !held:
		d.extra++
	}
	if held {
		d.held++
	}
}

// settles waits until at most one in a hundred of what is held is missing from the digest, and as much is there beside it.
func settles(t *testing.T, after string, compare func() drift) {
	t.Helper()
	var d drift
	for range 100 {
		if d = compare(); d.held >= 20 && d.missing*100 <= d.held && d.extra*100 <= d.held {
			t.Logf("%s: %d objects held, %d of them missing from the digest, %d in it that are not held", after, d.held, d.missing, d.extra)
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("%s: drift %+v", after, d)
}

const objects = 1000

// origin sends bodies of 8 KiB.
func origin(t *testing.T) *url.URL {
	body := make([]byte, 8<<10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		w.Write(body)
	}))
	t.Cleanup(s.Close)
	u, _ := url.Parse(s.URL)
	return u
}

// load asks for objects at random.
func load(t *testing.T, base string, requests int) {
	for range requests {
		resp, err := http.Get(fmt.Sprintf("%s/%d", base, rand.IntN(objects)))
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}

// program returns the path of a program, or skips.
func program(t *testing.T, name string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		path = "/usr/sbin/" + name
		if _, err := os.Stat(path); err != nil {
			t.Skipf("%s is not installed", name)
		}
	}
	return path
}

// run starts a program that ends with the test, once something listens at addr.
func serve(t *testing.T, addr string, cmd *exec.Cmd) {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Signal(os.Interrupt); cmd.Wait() })
	for range 500 {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%v does not listen:\n%s", cmd.Args, out.String())
}

// free returns an address on loopback at which nothing listens. Its port is none that systems give to those who ask for any.
func free(t *testing.T) string {
	for tries := 0; ; tries++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(22_000)))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		} else if tries > 100 {
			t.Fatal(err)
		}
	}
}

// The digest that follows a varnishd whose store is turned over many times has what it has.
func TestVarnish(t *testing.T) {
	varnishd := program(t, "varnishd")
	program(t, "varnishlog")
	dir, addr, from := t.TempDir(), free(t), origin(t)
	vcl := fmt.Sprintf(`vcl 4.1;
backend default { .host = "%s"; .port = "%s"; }
sub vcl_miss { if (req.http.X-Peek) { return (synth(504)); } }
sub vcl_backend_response { if (bereq.url == "/short") { set beresp.ttl = 1s; set beresp.grace = 0s; set beresp.keep = 0s; } }
sub vcl_pass { if (req.http.X-Peek) { return (synth(504)); } }
`, from.Hostname(), from.Port())
	if err := os.WriteFile(dir+"/vcl", []byte(vcl), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // varnishd gives up its rights
		t.Fatal(err)
	}
	os.Chmod(dir, 0o755)
	instance := dir + "/v"
	serve(t, addr, exec.Command(varnishd, "-F", "-n", instance, "-a", addr, "-f", dir+"/vcl", "-s", "malloc,2m", "-p", "vsl_mask=+ExpKill,+ExpBan", "-p", "vsl_space=80m"))
	n := node(t, "a", addr)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	v := &Varnish{Holdings: n.Holdings()}
	go v.follow(ctx, instance)
	for range 100 { // until the log is read
		load(t, "http://"+addr, 1)
		if n.Holdings().Keys().Len() > 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	compare := func() (d drift) {
		for i := range objects {
			r, _ := http.NewRequest("GET", fmt.Sprintf("http://%s/%d", addr, i), nil)
			r.Header.Set("X-Peek", "1")
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			d.note(resp.StatusCode == 200, v.Holdings.Has(fmt.Sprintf("%s/%d", addr, i)))
		}
		return d
	}
	resp, err := http.Get("http://" + addr + "/short")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	for _, held := range []bool{true, false} {
		for i := 0; v.Holdings.Has(addr+"/short") != held; i++ {
			if time.Sleep(10 * time.Millisecond); i > 1000 {
				t.Fatalf("what lives for a second: held %v for long", !held)
			}
		}
	}
	load(t, "http://"+addr, 20*objects)
	settles(t, fmt.Sprintf("varnishd after %d requests", 20*objects), compare)
}

// The digest that follows the files of an nginx whose cache is turned over many times has what it has.
func TestNginx(t *testing.T) {
	nginx := program(t, "nginx")
	dir, addr, from := t.TempDir(), free(t), origin(t)
	conf := fmt.Sprintf(`daemon off; user root; pid %[1]s/pid; error_log %[1]s/error.log;
events {}
http {
  access_log off; client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/temp; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  proxy_cache_path %[1]s/cache levels=1:2 keys_zone=z:64k;
  server { listen %[2]s; location / { proxy_pass %[3]s; proxy_cache z; proxy_cache_key "key $request_uri"; } }
}`, dir, addr, from)
	if err := os.WriteFile(dir+"/conf", []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(nginx, "-c", dir+"/conf", "-e", dir+"/error.log", "-p", dir)
	serve(t, addr, cmd)
	n := node(t, "a", addr)
	follower := &Nginx{Holdings: n.Holdings()}
	go follower.follow(t.Context(), dir+"/cache")
	load(t, "http://"+addr, 10*objects)
	files := map[string]bool{}
	settles(t, fmt.Sprintf("nginx after %d requests", 10*objects), func() (d drift) {
		clear(files)
		filepath.WalkDir(dir+"/cache", func(path string, e os.DirEntry, err error) error {
			if err == nil && isKey(e.Name()) {
				files[e.Name()] = true
			}
			return nil
		})
		for i := range objects {
			id := nginxIdentity(fmt.Sprintf("key /%d", i))
			d.note(files[id], follower.Holdings.Has(id))
		}
		return d
	})
	if len(files) > 600 {
		t.Errorf("%d files: nothing was evicted", len(files))
	}
}
