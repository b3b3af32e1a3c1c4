package proxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
	"github.com/summarycache/summarycache/gossip/httpcache/memstore"
	"github.com/summarycache/summarycache/gossip/invalidation"
)

// A row is one requirement on a shared cache, with the section that states it. It runs in a forward
// and a reverse proxy and, unless it says local, with its first request sent to another peer, so
// that the others are answered through a sibling with the same requests to the origin. It also runs
// with an httpcache.Member in place of the peer, unless notLibrary says why not. Both keep
// responses on disk, and once more in memory.
type row struct {
	section string
	name    string
	local   bool
	rules   rules.Set  // of the peers
	origin  []scripted // the n-th request gets the n-th answer, or the last
	steps   []step
}

// scripted is a response of the origin. An empty body means "n=" and the number of the request;
// status 0 means 200, and -1 breaks the connection.
type scripted struct {
	status int
	fields string // "Name: value" separated by " | "; DATE±seconds stands for an HTTP date
	body   string
	delay  time.Duration
}

// step is one request and its expected result.
type step struct {
	after  time.Duration // time since the step before
	method string        // "" = GET
	path   string        // "" = /r
	fields string        // as in scripted
	body   string

	broken bool   // the answer must be seen to be incomplete; nothing else is looked at
	origin bool   // the origin must be asked; else it must not
	status int    // 0 = 200
	get    string // the body, if it isn't ""
	want   string // response fields: "Name: value", "Name:" for absent
	sent   string // fields of the origin's request, likewise
}

func (r row) run(t *testing.T, mode string, inMemory bool) {
	sibling := mode == "sibling"
	peers := []string{"a", "b"}
	if mode == "library" {
		peers = nil
	}
	w := newWorld(t, mode == "reverse", r.serve)
	w.tune = func(c *Config) {
		c.Rules, c.Cluster = r.rules, told{w}
		if inMemory {
			c.Open = memstore.Open(64 << 20)
		}
	}
	defer w.close()
	for _, name := range peers {
		w.start(name, t.TempDir())
	}
	if mode == "library" {
		open := diskstore.Options{Dir: t.TempDir(), MaxBytes: 64 << 20, MemoryBytes: 4 << 20}.Open
		if inMemory {
			open = memstore.Open(64 << 20)
		}
		defer w.startLibrary("a", open)()
	}
	for i, s := range r.steps {
		time.Sleep(s.after)
		synctest.Wait()
		peer := "a"
		if sibling && i == 0 || mode == "turns" && i%2 == 0 {
			peer = "b"
		}
		w.step(peer, i, s)
	}
}

// told is a cluster in which every peer receives an invalidation at once.
type told struct{ w *world }

func (c told) Invalidate(_ context.Context, targets ...invalidation.Target) error {
	for _, h := range c.w.peers {
		for _, t := range targets {
			h.Invalidated(t)
		}
	}
	return nil
}
func (told) Concerning(string) ([]invalidation.ID, bool) { return nil, true }
func (told) Applied(...invalidation.ID) bool             { return true }

func (r row) serve(w http.ResponseWriter, req *http.Request, n int) {
	a := r.origin[min(n, len(r.origin)-1)]
	if a.delay > 0 {
		time.Sleep(a.delay)
	}
	if a.status < 0 {
		panic(http.ErrAbortHandler)
	}
	for name, value := range fieldsOf(a.fields) {
		w.Header().Add(name, value)
	}
	if a.body == "" {
		a.body = fmt.Sprintf("n=%d", n)
	}
	if a.status == 0 {
		a.status = 200
	}
	w.WriteHeader(a.status)
	if a.status != 304 && a.status != 204 {
		io.WriteString(w, a.body)
	}
}

// fieldsOf yields the fields of a script, with dates filled in.
func fieldsOf(s string) func(func(string, string) bool) {
	return func(yield func(string, string) bool) {
		for f := range strings.SplitSeq(s, " | ") {
			name, value, ok := strings.Cut(f, ":")
			if !ok {
				continue
			}
			value = strings.TrimPrefix(value, " ")
			if d, ok := strings.CutPrefix(value, "DATE"); ok {
				var offset int
				fmt.Sscanf(d, "%d", &offset)
				value = time.Now().Add(time.Duration(offset) * time.Second).UTC().Format(http.TimeFormat)
			}
			if !yield(name, value) {
				return
			}
		}
	}
}

func (w *world) step(peer string, i int, s step) {
	t := w.t
	t.Helper()
	if s.method == "" {
		s.method = http.MethodGet
	}
	if s.path == "" {
		s.path = "/r"
	}
	if s.status == 0 {
		s.status = 200
	}
	var fields []string
	for name, value := range fieldsOf(s.fields) {
		fields = append(fields, name+": "+value)
	}
	if s.broken {
		if r, err := w.try(peer, s.method, s.path, s.body, fields...); err == nil && r.err == nil {
			t.Errorf("step %d: %d %q came whole", i, r.StatusCode, r.body)
		}
		synctest.Wait()
		return
	}
	before := w.origin.count()
	r := w.do(peer, s.method, s.path, s.body, fields...)
	synctest.Wait()
	if r.StatusCode != s.status || s.get != "" && r.body != s.get {
		t.Errorf("step %d: %d %q, want %d %q", i, r.StatusCode, r.body, s.status, s.get)
	}
	if asked := w.origin.count() > before; asked != s.origin {
		t.Errorf("step %d: request to the origin: %v, want %v (Cache-Status: %s)", i, asked, s.origin, r.status())
	}
	if !strings.Contains(r.status(), peer) {
		t.Errorf("step %d: Cache-Status %q lacks %s", i, r.status(), peer)
	}
	checkFields(t, fmt.Sprintf("step %d: response", i), r.Header, s.want)
	if s.sent != "" {
		checkFields(t, fmt.Sprintf("step %d: origin's request", i), w.origin.last().Header, s.sent)
	}
}

func checkFields(t *testing.T, what string, h http.Header, want string) {
	t.Helper()
	for name, value := range fieldsOf(want) {
		if got := strings.Join(h.Values(name), ", "); got != value {
			t.Errorf("%s has %s: %q, want %q", what, name, got, value)
		}
	}
}

// requirements are all rows, in the order of the documentation.
func requirements() []row {
	return slices.Concat(storing, freshness, requests, validation, variants, unsafe, messages)
}

func TestConformance(t *testing.T) {
	rows := requirements()
	for _, r := range rows {
		for _, mode := range []string{"forward", "reverse", "sibling", "turns", "library"} {
			if r.local && (mode == "sibling" || mode == "turns") || mode == "library" && r.notLibrary() != "" {
				continue
			}
			for _, over := range []string{"disk", "memory"} {
				t.Run(r.section+"/"+strings.ReplaceAll(r.name, " ", "_")+"/"+mode+"/"+over, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { r.run(t, mode, over == "memory") })
				})
			}
		}
	}
	t.Logf("%d requirements", len(rows))
}

// The shapes that most rows have.

// reused is a response that a second request must get without the origin.
func reused(section, name, fields string) row {
	return row{section: section, name: name, origin: []scripted{{fields: fields}},
		steps: []step{{origin: true, get: "n=0"}, {after: 2 * time.Second, get: "n=0"}}}
}

// notReused is a response that a second request must not get without the origin.
func notReused(section, name, fields string) row {
	return row{section: section, name: name, origin: []scripted{{fields: fields}},
		steps: []step{{origin: true, get: "n=0"}, {after: 2 * time.Second, origin: true, get: "n=1"}}}
}
