package sibling

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/invalidation"
	"github.com/summarycache/summarycache/gossip/memnet"
)

// caches are the caches of one cluster, in virtual time, and the source of their values.
type caches struct {
	t      *testing.T
	net    *memnet.Network
	nodes  []*gossip.Node
	all    []*Cache
	closes []func()

	mu     sync.Mutex
	source int // its version
	loads  int
	takes  time.Duration // for which a load takes
}

func newCaches(t *testing.T, n int) *caches {
	w := &caches{t: t, net: memnet.New(1)}
	for range n {
		w.start()
	}
	time.Sleep(3 * time.Second)
	return w
}

func (w *caches) start() *Cache {
	w.t.Helper()
	host := w.net.Host(fmt.Sprintf("10.0.0.%d", len(w.all)+1))
	cfg := gossip.Config{Name: fmt.Sprint("c", len(w.all)), Bind: host.IP() + ":7946", Service: host.IP() + ":80", Objects: 100,
		Secret: []byte("a secret of 16 bytes"), Advanced: gossip.Advanced{Network: host}, Logger: slog.New(slog.DiscardHandler)}
	if len(w.all) > 0 {
		cfg.Join = []string{"10.0.0.1:7946"}
	}
	node, err := gossip.New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	transport := NewHTTPTransport(func(ctx context.Context, _, addr string) (net.Conn, error) { return host.Dial(ctx, addr) })
	c, err := NewCache(node, NewMemory(node.Holdings(), 0, 0), transport)
	if err != nil {
		w.t.Fatal(err)
	}
	l, err := host.Listen(cfg.Service)
	if err != nil {
		w.t.Fatal(err)
	}
	server := &http.Server{Handler: c}
	go server.Serve(l)
	if err := node.Join(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.nodes, w.all = append(w.nodes, node), append(w.all, c)
	w.closes = append(w.closes, func() { node.Close(); server.Close(); transport.CloseIdleConnections() })
	return c
}

func (w *caches) close() {
	for _, f := range w.closes {
		f()
	}
	time.Sleep(time.Minute)
	synctest.Wait()
}

func (w *caches) get(i int, identity string) string {
	w.t.Helper()
	v, err := w.all[i].Get(w.t.Context(), identity, func(context.Context) ([]byte, time.Time, error) {
		w.mu.Lock()
		w.loads++
		v, takes := w.source, w.takes
		w.mu.Unlock()
		time.Sleep(takes)
		return fmt.Append(nil, "v", v), time.Time{}, nil
	})
	if err != nil {
		w.t.Error(err)
	}
	return string(v)
}

func (w *caches) write() {
	w.mu.Lock()
	w.source++
	w.mu.Unlock()
}

// TestRemove: after a removal no cache has the object, no sibling brings it back, and a load that
// was in progress is not stored.
func TestRemove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCaches(t, 4)
		defer w.close()
		for version := range 20 {
			w.takes = 0
			for i := range 4 {
				if got := w.get(i, "x"); got != fmt.Sprint("v", version) {
					t.Fatalf("c%d has %s of version %d", i, got, version)
				}
			}
			time.Sleep(time.Duration(version%3) * time.Second) // the digests tell of it, or do not yet
			w.write()
			begun := time.Now()
			if err := w.all[version%4].Remove(t.Context(), "x"); err != nil || time.Since(begun) > time.Second {
				t.Errorf("Remove = %v, after %v", err, time.Since(begun))
			}
			for i, c := range w.all {
				if _, ok := c.Store.Get("x"); ok {
					t.Errorf("c%d still has it", i)
				}
			}
		}
		// A load that began before the removal returns the old value, only to callers from before.
		w.takes = time.Second
		var asking sync.WaitGroup
		asking.Go(func() { w.get(1, "y") })
		time.Sleep(time.Second / 2)
		w.write()
		if err := w.all[0].Remove(t.Context(), "y"); err != nil {
			t.Error(err)
		}
		if got := w.get(1, "y"); got != "v21" {
			t.Errorf("who asks afterwards gets %s", got)
		}
		asking.Wait()
		time.Sleep(5 * time.Second)
		for i := range w.all {
			if got := w.get(i, "y"); got != "v21" {
				t.Errorf("in the end c%d has %s", i, got)
			}
		}
		if s := w.all[1].Stats(); s.Invalidations != 21 || s.Loads == 0 || s.Hits == 0 || s.Gets < s.Hits+s.Loads {
			t.Errorf("Stats = %+v", s)
		}
	})
}

// TestRemoveAndPartition: the error names a cache that is cut off. When it is back, no sibling gets
// the old object from it.
func TestRemoveAndPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCaches(t, 3)
		defer w.close()
		for i := range 3 {
			w.get(i, "x")
		}
		time.Sleep(3 * time.Second)
		w.net.Partition([]string{"10.0.0.1", "10.0.0.2"}, []string{"10.0.0.3"})
		w.write()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var late *gossip.UnreachedError
		if err := w.all[0].Remove(ctx, "x"); !errors.As(err, &late) || fmt.Sprint(late.Members) != "[c2]" {
			t.Errorf("Remove = %v", err)
		}
		w.net.Heal()
		for range 100 {
			w.all[1].Store.Drop("x")
			if got := w.get(1, "x"); got != "v1" {
				t.Fatalf("got %s back", got)
			}
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(20 * time.Second)
		if got := w.get(2, "x"); got != "v1" {
			t.Errorf("the one that was away has %s", got)
		}
	})
}

// TestSet: all caches find a value that was set, without a load.
func TestSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCaches(t, 3)
		defer w.close()
		for i := range 3 {
			w.get(i, "x")
		}
		if err := w.all[2].Set(t.Context(), "x", []byte("set"), time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		for i := range 3 {
			if got := w.get(i, "x"); got != "set" {
				t.Errorf("c%d has %s", i, got)
			}
		}
		time.Sleep(time.Minute)
		if got := w.get(0, "x"); got != "v0" {
			t.Errorf("after it has expired: %s", got)
		}
		if err := w.all[1].Invalidate(t.Context(), invalidation.Target{Kind: invalidation.Prefix, Name: ""}); err != nil {
			t.Error(err)
		}
		for i, c := range w.all {
			if n := c.Store.(*Memory).Len(); n != 0 {
				t.Errorf("c%d holds %d", i, n)
			}
		}
	})
}

type user struct{ Name string }

// TestTyped: values of a type, by JSON or by the caller's codec.
func TestTyped(t *testing.T) {
	c := newTestCache("me", nil, NewMemory(nil, 0, 0))
	load := func(context.Context) (user, time.Time, error) { return user{"Ada"}, time.Time{}, nil }
	for range 2 {
		if u, err := Get(t.Context(), c, "user 17", Codec[user]{}, load); err != nil || u.Name != "Ada" {
			t.Errorf("Get = %v, %v", u, err)
		}
	}
	if err := Set(t.Context(), c, "user 17", Codec[user]{}, user{"Eve"}, time.Time{}); err != nil {
		t.Error(err)
	}
	if u, err := Get(t.Context(), c, "user 17", Codec[user]{}, load); err != nil || u.Name != "Eve" {
		t.Errorf("Get = %v, %v", u, err)
	}
	upper := Codec[string]{
		Encode: func(s string) ([]byte, error) { return []byte(strings.ToUpper(s)), nil },
		Decode: func(b []byte) (string, error) {
			if len(b) == 0 {
				return "", errors.New("empty")
			}
			return string(b), nil
		},
	}
	text := func(s string, err error) func(context.Context) (string, time.Time, error) {
		return func(context.Context) (string, time.Time, error) { return s, time.Time{}, err }
	}
	if s, err := Get(t.Context(), c, "s", upper, text("abc", nil)); s != "ABC" || err != nil {
		t.Errorf("Get = %q, %v", s, err)
	}
	if _, err := Get(t.Context(), c, "e", upper, text("", nil)); err == nil || !strings.Contains(err.Error(), "decoding a value: empty") {
		t.Errorf("Get of a value that the codec refuses: %v", err)
	}
	if _, err := Get(t.Context(), c, "f", upper, text("", io.EOF)); err != io.EOF {
		t.Errorf("Get of what cannot be loaded: %v", err)
	}
}

// TestUnsafeMethods: a request that changes an object removes it at all caches before it is
// answered, unless it fails. Nothing can be removed through the handler for siblings.
func TestUnsafeMethods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCaches(t, 2)
		defer w.close()
		status := http.StatusOK
		site := func(i int, method string) *http.Response {
			rec := httptest.NewRecorder()
			h := w.all[i].Wrap(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					rw.Header().Set("Cache-Control", "public, max-age=100")
				}
				rw.WriteHeader(status)
			}))
			h.ServeHTTP(rec, httptest.NewRequest(method, "http://site.test/x", nil))
			return rec.Result()
		}
		says := func(i int, method, want string) {
			t.Helper()
			got, _, _ := strings.Cut(site(i, method).Header.Get("Cache-Status"), "; ttl")
			if got != want {
				t.Errorf("%s at c%d: Cache-Status %q, want %q", method, i, got, want)
			}
		}
		says(0, "GET", "c0; fwd=uri-miss; fwd-status=200; stored")
		time.Sleep(3 * time.Second)
		site(1, "GET")
		says(1, "GET", "c1; hit")
		status = http.StatusForbidden
		says(0, "POST", "c0; fwd=method; fwd-status=403")
		says(1, "GET", "c1; hit")
		for _, c := range w.all {
			rec := httptest.NewRecorder()
			c.ServeHTTP(rec, httptest.NewRequest("POST", "http://site.test/x", nil))
			if rec.Code != http.StatusForbidden {
				t.Errorf("POST where siblings ask: %d", rec.Code)
			}
		}
		says(1, "GET", "c1; hit")
		status = http.StatusOK
		for _, method := range []string{"POST", "PUT", "DELETE", "PATCH"} {
			says(0, method, "c0; fwd=method; fwd-status=200")
			says(1, "GET", "c1; fwd=uri-miss; fwd-status=200; stored")
			says(1, "GET", "c1; hit")
		}
		says(1, "HEAD", "c1; hit")
		says(0, "OPTIONS", "c0; fwd=method")
		says(1, "GET", "c1; hit")
	})
}

// TestOutgrown: a cache with a hundred times as many objects as planned still has one false
// positive in a thousand, and siblings find its objects.
func TestOutgrown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCaches(t, 2)
		defer w.close()
		const held = 10_000
		for i := range held {
			if err := w.all[0].Set(t.Context(), fmt.Sprint("x", i), nil, time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(20 * time.Second)
		found, claimed := 0, 0
		for i := range held {
			found += len(w.nodes[1].Candidates(nil, fmt.Sprint("x", i)))
			claimed += len(w.nodes[1].Candidates(nil, fmt.Sprint("y", i)))
		}
		if found != held || claimed > 40 {
			t.Errorf("%d of %d are found, and %d that are not held", found, held, claimed)
		}
	})
}

// TestZeroValues: a type without its constructor returns an error that names it, or behaves as if
// it were empty.
func TestZeroValues(t *testing.T) {
	ctx := t.Context()
	request := func() *http.Request { return httptest.NewRequest("GET", "http://site.test/x", strings.NewReader("")) }
	question := func() *http.Request {
		r := request()
		r.Header.Set("Cache-Control", "only-if-cached")
		return r
	}
	load := func(context.Context) ([]byte, time.Time, error) { return nil, time.Time{}, nil }
	status := func(h http.Handler, r *http.Request) int {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		return rec.Code
	}
	for name, tc := range map[string]struct {
		err  error
		want error
	}{
		"Cache.Get":                  {func() error { _, err := new(Cache).Get(ctx, "", load); return err }(), errZero},
		"Cache.Set":                  {new(Cache).Set(ctx, "", nil, time.Time{}), errZero},
		"Cache.Remove":               {new(Cache).Remove(ctx, ""), errZero},
		"Cache.Invalidate":           {new(Cache).Invalidate(ctx), errZero},
		"Cache.Serve":                {new(Cache).Serve(httptest.NewRecorder(), request(), nil), errZero},
		"Transport.RoundTrip":        {func() error { _, err := new(Transport).RoundTrip(request()); return err }(), errZero},
		"Transport of a zero Client": {func() error { _, err := (&Transport{Siblings: new(Client)}).RoundTrip(request()); return err }(), errZero},
		"Cache.Transport":            {func() error { _, err := new(Cache).Transport(nil).RoundTrip(request()); return err }(), errZero},
		"Lookup.Next":                {func() error { _, err := new(Lookup).Next(ctx, nil); return err }(), errZero},
	} {
		if !errors.Is(tc.err, tc.want) {
			t.Errorf("%s: %v, want %v", name, tc.err, tc.want)
		}
	}
	for name, got := range map[string]int{
		"Cache":              status(new(Cache), request()),
		"Cache, a question":  status(new(Cache), question()),
		"Cache.Wrap":         status(new(Cache).Wrap(http.NotFoundHandler()), request()),
		"Handler":            status(new(Handler), request()),
		"Handler, question":  status(new(Handler), question()),
		"Coalescer":          status(new(Coalescer), httptest.NewRequest("GET", CoalescePath+"?key=1", nil)),
		"Cache of a Memory":  status(newTestCache("me", nil, NewMemory(nil, 0, 0)), question()),
		"its Wrap, POST":     status(newTestCache("me", nil, NewMemory(nil, 0, 0)).Wrap(http.NotFoundHandler()), httptest.NewRequest("POST", "http://a/", nil)),
		"Handler of a zero":  status(&Handler{Cache: new(Cache).Transport(nil)}, question()),
		"Handler, no origin": status(&Handler{Cache: new(Transport)}, question()),
	} {
		if got < 400 {
			t.Errorf("%s answers %d", name, got)
		}
	}
	c, h, co := new(Client), new(Health), new(Coalescer)
	c.Gone("x")
	c.CloseIdleConnections()
	c.Load()
	c.originRoundTrip("x")
	co.Joined()
	co.Served("x", nil)
	co.Invalidated(invalidation.Target{Kind: invalidation.Everything}, 1)
	h.Of("x")
	h.Asked("x", 0, nil)
	if c.Lookup(LookupRequest{}).Left() != 0 || c.Stats() != (Stats{}) || new(Cache).Stats() != (CacheStats{}) {
		t.Error("the zero Client has candidates or counts")
	}
	if _, ok := co.InFlight(ctx, "x", 0); ok {
		t.Error("the zero Coalescer names a peer")
	}
	var held *gossip.Holdings
	for _, held := range []*gossip.Holdings{held, new(gossip.Holdings)} {
		held.Add("x")
		if held.Remove("x") || held.Has("x") || held.Filter() != nil || held.Reseed(1, nil) == nil {
			t.Error("Holdings without a filter changed")
		}
	}
}
