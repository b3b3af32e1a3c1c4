package node

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/cmd/peer/internal/origin"
)

// mutex returns a lock deep within v, by the names of fields. "Load" follows an
// atomic pointer, and "0" is the first element of a slice.
func mutex(t *testing.T, v any, path ...string) sync.Locker {
	t.Helper()
	at := reflect.ValueOf(v)
	for _, name := range path {
		for at.Kind() == reflect.Pointer {
			at = at.Elem()
		}
		switch name {
		case "Load":
			at = at.Addr().MethodByName("Load").Call(nil)[0]
			continue
		case "0":
			at = at.Index(0)
		default:
			at = at.FieldByName(name)
		}
		if !at.IsValid() || !at.CanAddr() {
			t.Fatalf("there is no %s any more: %v", name, path)
		}
		at = reflect.NewAt(at.Type(), unsafe.Pointer(at.UnsafeAddr())).Elem() // fields that are not exported, too
	}
	return at.Addr().Interface().(sync.Locker)
}

// Each part that can hang is really made to hang, at a peer that gets requests
// meanwhile: /healthz names the part, every answer of the admin listener comes within a
// second, and the peer recovers when the part goes on.
func TestHangs(t *testing.T) {
	hangs := map[string]struct {
		hang  func(t *testing.T, n *Node) (goOn func())
		names []string // parts, at least one of which is reported as hanging
		says  string   // the part that is missing in the status; "" = none
	}{
		"a shard of the digest": {held(func(t *testing.T, n *Node) sync.Locker {
			return mutex(t, n.holdings.Keys().Filter(), "counters", "Load", "shards", "0", "mu")
		}), []string{"digest", "publishing"}, "digest"},
		"publishing": {held(func(t *testing.T, n *Node) sync.Locker {
			return mutex(t, n.holdings.Keys().Filter(), "freezing")
		}), []string{"publishing"}, ""},
		"the exchange": {held(func(t *testing.T, n *Node) sync.Locker {
			return mutex(t, n.gossip, "mu")
		}), []string{"exchange"}, "exchange"},
		"the store's room": {held(func(t *testing.T, n *Node) sync.Locker {
			return mutex(t, n.proxy.Store(), "room", "Mutex")
		}), []string{"store"}, "store"},
		"the store's writer": {held(func(t *testing.T, n *Node) sync.Locker {
			return mutex(t, n.proxy.Store(), "appending")
		}), []string{"store-writer"}, ""},
	}
	for name, h := range hangs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			site := &origin.Handler{Sizes: map[string]int64{}}
			for i := range 100 {
				site.Sizes[fmt.Sprintf("/%d", i)] = 100
			}
			n := startBefore(t, site, dir)
			a := adminOf{t, n.Addresses().Admin}
			if code, body := a.get("/healthz"); code != http.StatusOK || body != "ok\n" {
				t.Fatalf("/healthz of an idle peer = %d %q", code, body)
			}
			goOn := sync.OnceFunc(h.hang(t, n))
			defer goOn()
			var all sync.WaitGroup
			defer all.Wait()
			defer goOn()
			for i := range 100 { // work, which may not end before the part goes on
				all.Go(func() {
					if resp, err := http.Get(fmt.Sprintf("http://%s/%d", n.Addresses().Listen, i)); err == nil {
						io.Copy(io.Discard, resp.Body)
						resp.Body.Close()
					}
				})
			}
			a.until(http.StatusServiceUnavailable, func(body string) bool {
				for _, part := range h.names {
					if !strings.Contains(body, part+" hangs: ") {
						return false
					}
				}
				return true
			})
			for _, path := range []string{"/status.json", "/status", "/metrics", "/history.json", "/cluster.json", "/readyz", "/", "/why?url=/1", "/digest"} {
				a.inTime(path, func() (*http.Response, error) { return http.Get("http://" + a.addr + path) })
			}
			a.inTime("/purge", func() (*http.Response, error) {
				r, _ := http.NewRequest("POST", "http://"+a.addr+"/purge", strings.NewReader(`{"url": "/1"}`))
				r.Header.Set("Authorization", "Bearer "+n.session)
				return http.DefaultClient.Do(r)
			})
			var missing string
			for range 5 { // another part may be late on a busy machine
				s, err := admin.Client(a.addr).Status(t.Context())
				if err != nil || s.Health.OK {
					t.Errorf("the status of a peer that hangs: %+v, %v", s.Health, err)
				}
				if missing = strings.Join(s.Health.Missing, " "); missing == "" || h.says != "" {
					break
				}
			}
			if h.says != "" && !strings.Contains(missing, h.says) || h.says == "" && missing != "" {
				t.Errorf("the status misses %q, want %q", missing, h.says)
			}
			goOn()
			a.until(http.StatusOK, func(body string) bool { return body == "ok\n" })
		})
	}
}

// held makes a part hang by a lock.
func held(lock func(*testing.T, *Node) sync.Locker) func(*testing.T, *Node) func() {
	return func(t *testing.T, n *Node) func() {
		m := lock(t, n)
		m.Lock()
		return m.Unlock
	}
}

// An adminOf asks a peer's admin listener.
type adminOf struct {
	t    *testing.T
	addr string
}

func (a adminOf) get(path string) (int, string) {
	a.t.Helper()
	resp, err := http.Get("http://" + a.addr + path)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// until waits for an answer of /healthz.
func (a adminOf) until(code int, right func(body string) bool) {
	a.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		got, body := a.get("/healthz")
		if got == code && right(body) {
			return
		}
		if time.Now().After(deadline) {
			a.t.Fatalf("after a minute /healthz = %d %q, want %d", got, body, code)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// inTime checks that an answer comes within a second in one of a few attempts, since this
// machine may be busy.
func (a adminOf) inTime(what string, ask func() (*http.Response, error)) {
	a.t.Helper()
	var took time.Duration
	for range 5 {
		begun := time.Now()
		resp, err := ask()
		if err != nil {
			a.t.Errorf("%s: %v", what, err)
			return
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if took = time.Since(begun); took < time.Second {
			return
		}
	}
	a.t.Errorf("%s took %v", what, took)
}

// startBefore starts a peer before an origin, to which a part hangs after a fifth of a second.
func startBefore(t *testing.T, h http.Handler, dir string) *Node {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	cfg := local(t, dir)
	cfg.Origin, _ = url.Parse(server.URL)
	n, err := Start(t.Context(), Options{Config: cfg, HangLimit: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}
