package proxy

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
)

// A reloadable is a Handler before whose origins a test can wait.
type reloadable struct {
	*Handler
	t     *testing.T
	front *httptest.Server
}

func newReloadable(t *testing.T, s Settings) *reloadable {
	h, err := New(Config{Settings: s, Config: engine.Config{Name: "a"}, Store: diskstore.Options{Dir: t.TempDir(), MaxBytes: 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(h)
	t.Cleanup(func() { front.Close(); h.Close() })
	return &reloadable{h, t, front}
}

func (r *reloadable) get(host, path string) (status int, body string) {
	q, _ := http.NewRequest("GET", r.front.URL+path, nil)
	q.Host = host
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		r.t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Error(err)
	}
	return resp.StatusCode, string(b)
}

// A named origin answers with its name, and counts connections and health checks.
type named struct {
	url                 string
	connections, checks atomic.Int64
	slow                chan struct{} // closed = answers to /slow go on
	begun               chan struct{} // has one for each answer to /slow
}

func newNamed(t *testing.T, name string) *named {
	n := &named{slow: make(chan struct{}), begun: make(chan struct{}, 10)}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		switch q.URL.Path {
		case "/check":
			n.checks.Add(1)
		case "/slow":
			http.NewResponseController(w).Flush()
			n.begun <- struct{}{}
			<-n.slow
		}
		io.WriteString(w, name)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			n.connections.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	n.url = s.URL
	return n
}

// Sites come, go and change while requests are under way: these end as they began, and a site that
// stays keeps its connections.
func TestConfigure(t *testing.T) {
	one, two := newNamed(t, "one"), newNamed(t, "two")
	stays := Site{Hosts: []string{"stays.test"}, Origins: mustURLs(one.url)}
	goes := Site{Hosts: []string{"goes.test"}, Origins: mustURLs(two.url)}
	r := newReloadable(t, Settings{Sites: []Site{stays, goes}})
	expect := func(host string, status int, body string) {
		t.Helper()
		if gotStatus, got := r.get(host, "/x"); gotStatus != status || status == 200 && got != body {
			t.Errorf("%s: %d %s, want %d %s", host, gotStatus, got, status, body)
		}
	}
	expect("stays.test", 200, "one")
	expect("goes.test", 200, "two")
	expect("comes.test", 421, "")
	var under sync.WaitGroup
	under.Go(func() {
		if status, body := r.get("goes.test", "/slow"); status != 200 || body != "two" {
			t.Errorf("a request under way: %d %s", status, body)
		}
	})
	<-two.begun
	known := r.applied.Load().sites[0]
	r.Configure(Settings{Sites: []Site{{Hosts: []string{"comes.test"}, Origins: mustURLs(two.url)}, stays}})
	if now := r.applied.Load().sites[1]; now != known {
		t.Error("a site that stays has lost the state of its origins")
	}
	expect("stays.test", 200, "one")
	expect("goes.test", 421, "")
	expect("comes.test", 200, "two")
	close(two.slow)
	under.Wait()
	if n := one.connections.Load(); n != 1 {
		t.Errorf("%d connections to the origin of a site that stays, want 1", n)
	}
	late := httptest.NewRequest("GET", "http://goes.test/x", nil) // it had its URL from the former settings
	late.RequestURI = ""
	if resp, err := (toOrigins{r.Handler}).RoundTrip(late); err != nil || resp.StatusCode != 200 {
		t.Errorf("a request for a site that has gone meanwhile: %v", err)
	}
	moved := stays
	moved.Origins = mustURLs(two.url)
	r.Configure(Settings{Sites: []Site{moved}})
	expect("stays.test", 200, "two")
	r.Configure(Settings{Origin: mustURLs(one.url)[0]})
	expect("any.test", 200, "one")
}

// The other settings change as well, and health checks end with their site.
func TestConfigureOthers(t *testing.T) {
	one := newNamed(t, "one")
	checked := Site{Origins: mustURLs(one.url), Check: "/check"}
	r := newReloadable(t, Settings{Sites: []Site{checked}})
	for one.checks.Load() == 0 {
		time.Sleep(time.Millisecond) // until the checks have begun
	}
	old := r.applied.Load().sites[0]
	r.Configure(Settings{Sites: []Site{{Origins: mustURLs(one.url)}}, MaxHeader: 4096,
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Rules: rules.Set{{Name: "all", Bypass: new(true)}}})
	v := r.applied.Load()
	if v.MaxHeader != 4096 || !v.bySchemes || !v.trusts("127.0.0.1:1") || len(v.Rules) != 1 {
		t.Errorf("settings %+v", v.Settings)
	}
	r.watching.Wait() // ends, since no site is checked any more
	if old == v.sites[0] {
		t.Error("a site whose check has gone has kept its state")
	}
	failing := mustURLs("http://127.0.0.1:1")
	r.Configure(Settings{Sites: []Site{{Origins: failing}}})
	r.get("a.test", "/x")
	if f := r.FailingOrigins(); len(f) != 1 {
		t.Errorf("failing origins %+v, want one", f)
	}
	r.Configure(Settings{Sites: []Site{{Origins: mustURLs(one.url)}}})
	if f := r.FailingOrigins(); len(f) != 0 {
		t.Errorf("an origin that has gone fails: %+v", f)
	}
}

// Requests and changes of settings at the same time.
func TestConfigureUnderLoad(t *testing.T) {
	one, two := newNamed(t, "one"), newNamed(t, "two")
	r := newReloadable(t, Settings{Sites: []Site{{Origins: mustURLs(one.url)}}})
	var load sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		load.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if status, body := r.get("a.test", "/x"); status != 200 || body != "one" && body != "two" {
					t.Errorf("%d %s", status, body)
				}
			}
		})
	}
	for i := range 100 {
		r.Configure(Settings{Sites: []Site{{Name: "a.test", Origins: mustURLs([]string{one.url, two.url}[i%2])}}, MaxHeader: 8192 + i})
		time.Sleep(time.Millisecond)
	}
	close(done)
	load.Wait()
}
