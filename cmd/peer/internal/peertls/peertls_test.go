package peertls

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/peertls/certtest"
	"github.com/summarycache/summarycache/gossip/peering"
)

func later() time.Time { return time.Now().Add(time.Hour) }

func identity(t *testing.T, a *certtest.Authority, name string) *Identity {
	t.Helper()
	cert, key := a.Peer(name, later())
	i, err := Load(name, Files{cert, key, a.File})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// serve answers plain and TLS requests on one port, with the name in the client's certificate.
func serve(t *testing.T, i *Identity) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil {
			io.WriteString(w, "plain")
			return
		}
		io.WriteString(w, r.TLS.PeerCertificates[0].DNSNames[0])
	})}
	done := make(chan error, 1)
	go func() { done <- server.Serve(Listen(l, i)) }()
	t.Cleanup(func() {
		server.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve = %v", err)
		}
	})
	return l.Addr().String()
}

// ask sends a request to the peer of a name; "" = a request for no peer.
func ask(t *testing.T, rt http.RoundTripper, peer, addr string) (string, error) {
	t.Helper()
	ctx := t.Context()
	if peer != "" {
		ctx = peering.WithPeer(ctx, peer)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := rt.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func transport(t *testing.T, i *Identity) *Transport {
	tr := NewTransport(i, (&net.Dialer{}).DialContext)
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

func TestWhoTalksToWhom(t *testing.T) {
	ours, theirs := certtest.New(t), certtest.New(t)
	addr := serve(t, identity(t, ours, "b"))
	for name, c := range map[string]struct {
		from       *Identity
		peer, want string
		err        string
	}{
		"peers":                {identity(t, ours, "a"), "b", "a", ""},
		"client":               {identity(t, ours, "a"), "", "plain", ""},
		"another has come":     {identity(t, ours, "a"), "c", "", "not c"},
		"of a strange cluster": {identity(t, theirs, "a"), "b", "", "unknown authority"},
	} {
		got, err := ask(t, transport(t, c.from), c.peer, addr)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, %v, want %q, %q", name, got, err, c.want, c.err)
		}
	}
	// A client that trusts any server is still not trusted: without a certificate, or with a strange one.
	strange := identity(t, theirs, "a")
	for name, config := range map[string]*tls.Config{
		"no certificate": {InsecureSkipVerify: true},
		"a strange one":  {InsecureSkipVerify: true, Certificates: []tls.Certificate{strange.now.Load().cert}},
	} {
		conn, err := tls.Dial("tcp", addr, config)
		if err == nil { // with TLS 1.3 the refusal comes with the first read
			_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			if err == nil {
				_, err = conn.Read(make([]byte, 1))
			}
			conn.Close()
		}
		if err == nil {
			t.Errorf("%s: answered", name)
		}
	}
}

func TestLoadRefusesWhatOthersWould(t *testing.T) {
	a, other := certtest.New(t), certtest.New(t)
	cert, key := a.Peer("a", later())
	old, oldKey := a.Peer("a", time.Now().Add(-time.Minute))
	for name, c := range map[string]struct {
		peer  string
		files Files
		want  string
	}{
		"good":            {"a", Files{cert, key, a.File}, ""},
		"another name":    {"b", Files{cert, key, a.File}, "not b"},
		"other authority": {"a", Files{cert, key, other.File}, "unknown authority"},
		"run out":         {"a", Files{old, oldKey, a.File}, "expired"},
		"wrong key":       {"a", Files{cert, oldKey, a.File}, "private key does not match"},
		"no files":        {"a", Files{"/nowhere/c", "/nowhere/k", "/nowhere/ca"}, "/nowhere/ca"},
		"no certificate":  {"a", Files{cert, key, key}, "holds no certificate"},
	} {
		if _, err := Load(c.peer, c.files); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: Load = %v, want %q", name, err, c.want)
		}
	}
}

// A reload changes which authority a running peer trusts, and a reload that fails changes nothing.
func TestReload(t *testing.T) {
	ours, next := certtest.New(t), certtest.New(t)
	cert, key := ours.Peer("b", later())
	b, err := Load("b", Files{cert, key, ours.File})
	if err != nil {
		t.Fatal(err)
	}
	addr := serve(t, b)
	newcomer := identity(t, next, "a")
	if _, err := ask(t, transport(t, newcomer), "b", addr); err == nil {
		t.Fatal("a peer of the next authority is trusted already")
	}
	overwrite := func(path string, from ...string) {
		t.Helper()
		var all []byte
		for _, f := range from {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, text...)
		}
		if err := os.WriteFile(path, all, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	nextCert, nextKey := next.Peer("b", later())
	overwrite(cert, nextCert)
	if _, err := Load("b", Files{cert, key, ours.File}); err == nil {
		t.Error("a certificate without its key is taken")
	}
	if got, err := ask(t, transport(t, identity(t, ours, "a")), "b", addr); got != "a" {
		t.Errorf("after files that do not fit: %q, %v", got, err)
	}
	overwrite(key, nextKey)
	overwrite(ours.File, ours.File, next.File)
	later, err := Load("b", Files{cert, key, ours.File})
	if err != nil {
		t.Fatal(err)
	}
	b.Renew(later)
	if got, err := ask(t, transport(t, newcomer), "b", addr); got != "a" {
		t.Errorf("after the reload: %q, %v", got, err)
	}
}
