package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/cmd/peer/internal/peertls/certtest"
)

// ask sends a request to a peer without following redirects.
func ask(t *testing.T, peer, path, host string, fields ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+peer+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		r.Header.Add(name, value)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// Two sites behind one pair of peers, which reach the origins at different addresses, one by https
// with its own authority.
func TestSitesOfAFile(t *testing.T) {
	page := func(name string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "max-age=60")
			io.WriteString(w, name+" for "+r.Host)
		})
	}
	one, again, secure := httptest.NewServer(page("one")), httptest.NewServer(page("one")), httptest.NewTLSServer(page("two"))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	for _, s := range []*httptest.Server{one, again, secure} {
		defer s.Close()
	}
	ca := write(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})))
	file := func(origin string) string {
		return write(t, "peer.yaml", `
sites:
  - hosts: one.example
    origins: `+origin+`
  - hosts: two.example
    origins: `+secure.URL+`
    ca: `+ca+`
    sni: example.com
  - hosts: three.example
    origins: `+secure.URL+`
`)
	}
	a := inProcess(t, local(t, "a", "--config", file(one.URL)))
	b := inProcess(t, local(t, "b", "--config", file(again.URL), "--join", a.gossip))
	for i, host := range []string{"one", "two"} {
		for _, cached := range []bool{false, true} {
			r, body := ask(t, a.listen, "/x", host+".example")
			if body != host+" for "+host+".example" || strings.Contains(r.Header.Get("Cache-Status"), "a; hit") != cached {
				t.Errorf("%s: %s, %v", host, body, r.Header)
			}
			a.stored(t, i+1)
		}
	}
	if r, body := ask(t, a.listen, "/x", "three.example"); r.StatusCode != 502 || !strings.Contains(r.Header.Get("Cache-Status"), "detail=origin-certificate") {
		t.Errorf("a certificate that is not trusted: %s, %v, %s", r.Status, r.Header, body)
	}
	if r, body := ask(t, a.listen, "/x", "four.example"); r.StatusCode != 421 || !strings.Contains(body, "no site here") {
		t.Errorf("a host of no site: %s, %s", r.Status, body)
	}
	eventually(t, time.Minute, "b knows what a holds", func() bool {
		s, err := admin.Client(b.admin).Status(t.Context())
		return err == nil && len(s.Members) == 1 && s.Members[0].Keys == 2 && s.Members[0].Current
	})
	if r, _ := ask(t, b.listen, "/x", "one.example"); !strings.Contains(strings.Join(r.Header["Cache-Status"], ", "), "a; hit") {
		t.Errorf("not found at the sibling: %v", r.Header)
	}
	holds(t, words(t, 0, "why", "http://one.example/x", "--admin", a.admin), "A hit")
	holds(t, words(t, 0, "status", "--admin", a.admin), "reverse proxy for 3 sites")
	holds(t, words(t, 0, "validate", "--config", file(one.URL)), "sites 1 hosts: one.example, origins: "+one.URL, "sites 3")
}

// Clients use TLS with HTTP/1.1 and HTTP/2, and HTTP/2 in the clear, and get the certificate of the
// name that they request; after SIGHUP the renewed one.
func TestTLSToClients(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		io.WriteString(w, r.Header.Get("X-Forwarded-Proto"))
		w.Write(make([]byte, 100_000))
	}))
	defer app.Close()
	authority := certtest.New(t)
	cert1, key1 := authority.Peer("one.example", time.Now().Add(time.Hour))
	cert2, key2 := authority.Peer("two.example", time.Now().Add(time.Hour))
	p := spawn(t, local(t, "a", "--origin", app.URL, "--https", "127.0.0.1:0", "--https-cert", cert1+","+cert2, "--https-key", key1+","+key2)...)
	roots := x509.NewCertPool()
	pemCA, err := os.ReadFile(authority.File)
	if err != nil || !roots.AppendCertsFromPEM(pemCA) {
		t.Fatal(err)
	}
	get := func(url, name string, protocols func(*http.Protocols)) (*http.Response, string) {
		t.Helper()
		var of http.Protocols
		protocols(&of)
		transport := &http.Transport{Protocols: &of, TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: name}}
		defer transport.CloseIdleConnections()
		r, err := http.NewRequest("GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = name
		resp, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatalf("%s of %s: %v", url, name, err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || len(body) < 100_000 {
			t.Fatalf("%s of %s: %d bytes, %v", url, name, len(body), err)
		}
		return resp, strings.TrimRight(string(body), "\x00")
	}
	http1 := func(p *http.Protocols) { p.SetHTTP1(true) }
	http2 := func(p *http.Protocols) { p.SetHTTP2(true) }
	stored := 0
	clear2 := func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) }
	for i, c := range []struct {
		url, name string
		protocols func(*http.Protocols)
		proto     string
		scheme    string
		hit       bool
	}{
		{"https://" + p.https, "one.example", http1, "HTTP/1.1", "https", false},
		{"https://" + p.https, "one.example", http2, "HTTP/2.0", "https", true},
		{"https://" + p.https, "two.example", http2, "HTTP/2.0", "https", true},
		{"http://" + p.listen, "one.example", clear2, "HTTP/2.0", "http", false},
		{"http://" + p.listen, "one.example", clear2, "HTTP/2.0", "http", true},
		{"http://" + p.listen, "one.example", http1, "HTTP/1.1", "http", true},
	} {
		r, body := get(c.url+"/x", c.name, c.protocols)
		if r.Proto != c.proto || body != c.scheme || strings.Contains(r.Header.Get("Cache-Status"), "a; hit") != c.hit {
			t.Errorf("%d: %s, %s, %v", i, r.Proto, body, r.Header["Cache-Status"])
		}
		if !c.hit {
			stored++
			eventually(t, time.Minute, "the answer is stored", func() bool { return p.status().Digest.Keys == stored })
		}
		if r.TLS != nil && r.TLS.PeerCertificates[0].DNSNames[0] != c.name {
			t.Errorf("%s got the certificate of %v", c.name, r.TLS.PeerCertificates[0].DNSNames)
		}
	}
	renewed, key := authority.Peer("one.example", time.Now().Add(2*time.Hour))
	for from, to := range map[string]string{renewed: cert1, key: key1} {
		if err := os.Rename(from, to); err != nil && from != to {
			t.Fatal(err)
		}
	}
	p.cmd.Process.Signal(syscall.SIGHUP)
	eventually(t, time.Minute, "the renewed certificate is used", func() bool {
		r, _ := get("https://"+p.https+"/x", "one.example", http2)
		return time.Until(r.TLS.PeerCertificates[0].NotAfter) > 90*time.Minute
	})
	if !strings.Contains(p.stderr.String(), "changed=https-cert") {
		t.Errorf("the log does not name the changes:\n%s", p.stderr.String())
	}
	if code := p.stop(); code != 0 {
		t.Errorf("the peer ended with %d", code)
	}
}

// A host has one form, by every version of HTTP, also where requests are answered past net/http's server; what is no
// host is refused.
func TestHostsHaveOneForm(t *testing.T) {
	var hosts sync.Map // that the origin has seen
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hosts.Store(r.Host, true)
		w.Header().Set("Cache-Control", "max-age=60")
		io.WriteString(w, "x")
	}))
	defer origin.Close()
	file := write(t, "peer.yaml", "sites:\n  - hosts: [one.test, \"[2001:DB8::0:1]\"]\n    origins: "+origin.URL+"\n")
	p := inProcess(t, local(t, "a", "--config", file))
	for _, version := range []string{"HTTP/1.1", "HTTP/2.0"} {
		var protocols http.Protocols
		protocols.SetHTTP1(version == "HTTP/1.1")
		protocols.SetUnencryptedHTTP2(version == "HTTP/2.0")
		to := &http.Transport{Protocols: &protocols}
		defer to.CloseIdleConnections()
		for _, c := range []struct {
			host   string
			status int
			hit    bool
		}{
			{"one.test", 200, version == "HTTP/2.0"}, {"one.test", 200, true}, {"one.test.", 200, true}, {"one.test:0080", 200, true}, {"ONE.test.:80", 200, true},
			{"one.test:abc", 400, false}, {"one.test:99999", 400, false}, {"one..test", 400, false}, {"one.test", 200, true},
			{"[2001:db8::1]", 200, version == "HTTP/2.0"}, {"[2001:db8:0:0:0:0:0:1]", 200, true}, {"[::g]", 400, false},
		} {
			r, err := http.NewRequest("GET", "http://"+p.listen+"/x", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = c.host
			resp, err := to.RoundTrip(r)
			if err != nil {
				t.Fatalf("%s by %s: %v", c.host, version, err)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if hit := strings.Contains(resp.Header.Get("Cache-Status"), "a; hit"); resp.StatusCode != c.status || hit != c.hit || resp.Proto != version {
				t.Errorf("Host: %s by %s: %d %s %v, want %d, hit %v", c.host, version, resp.StatusCode, resp.Proto, resp.Header["Cache-Status"], c.status, c.hit)
			}
		}
	}
	hosts.Range(func(host, _ any) bool {
		if host != "one.test" && host != "[2001:db8::1]" {
			t.Errorf("the origin has seen the host %s", host)
		}
		return true
	})
}
