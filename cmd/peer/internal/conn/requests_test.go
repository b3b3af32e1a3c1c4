package conn

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/budget"
)

// reluctant is the answer to a client that takes nothing until its deadline is set.
type reluctant struct {
	*httptest.ResponseRecorder
	cut  chan struct{}
	once sync.Once
}

func (r *reluctant) Write([]byte) (int, error) { <-r.cut; return 0, io.ErrClosedPipe }

func (r *reluctant) SetWriteDeadline(time.Time) error {
	r.once.Do(func() { close(r.cut) })
	return nil
}

// known gives addresses credit for so many places.
func known(g *Gate, places int, addrs ...string) {
	for _, addr := range addrs {
		for range places * perPlace {
			g.credit.of(prefixOf(addr)).earn(time.Now())
		}
	}
}

// TestRequestsHaveABudget checks that requests beyond the memory for them are answered 503, that one
// address has half of it, and that a client which has taken nothing for a second makes room.
func TestRequestsHaveABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(32 << 20)
		account := b.Open("requests", 0, 4*perRequest)
		g := NewGate(Limits{Requests: account})
		known(g, 8, "10.0.0.1:1", "10.0.0.3:1", "10.0.0.5:1", "10.0.0.7:1")
		end := make(chan struct{})
		handler := g.Requests(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/waits" {
				<-end
			} else if _, err := w.Write([]byte("x")); err != nil {
				panic(http.ErrAbortHandler)
			}
		}))
		var all sync.WaitGroup
		ask := func(from, path, body string) (code func() int) {
			w := &reluctant{ResponseRecorder: httptest.NewRecorder(), cut: make(chan struct{})}
			r := httptest.NewRequest("GET", path, strings.NewReader(body))
			if body == "" {
				r.Body = nil
			}
			r.RemoteAddr, r.ProtoMajor = from, 2
			all.Go(func() {
				defer func() {
					if recover() != nil {
						w.Code = -1
					}
				}()
				handler.ServeHTTP(w, r)
			})
			synctest.Wait()
			return func() int { synctest.Wait(); return w.Code }
		}
		first, second := ask("10.0.0.1:1", "/stalls", ""), ask("10.0.0.1:1", "/waits", "")
		if got := ask("10.0.0.1:2", "/waits", "")(); got != 503 {
			t.Errorf("a third request of an address: %d, want 503", got)
		}
		ask("10.0.0.2:1", "/waits", "")
		ask("10.0.0.3:1", "/stalls", "")
		if got := ask("10.0.0.4:1", "/waits", "")(); got != 503 {
			t.Errorf("a fifth request: %d, want 503", got)
		}
		time.Sleep(stalled + time.Millisecond)
		if got := ask("10.0.0.1:2", "/waits", "")(); got != 200 || first() != -1 || second() != 200 {
			t.Errorf("an address's request after one of it has stalled: %d; that one ended with %d, another with %d", got, first(), second())
		}
		if got := ask("10.0.0.5:1", "/waits", "")(); got != 200 {
			t.Errorf("a request after another's has stalled: %d", got)
		}
		if got := ask("10.0.0.6:1", "/waits", "")(); got != 503 {
			t.Errorf("a request while none stalls: %d, want 503", got)
		}
		close(end)
		all.Wait()
		if got := ask("10.0.0.7:1", "/waits", strings.Repeat("x", 10))(); got != 200 {
			t.Errorf("a request with a body: %d", got)
		}
		if _, dropped, refused := g.Stats(); dropped != 2 || refused != 3 {
			t.Errorf("%d requests were cut and %d refused, want 2 and 3", dropped, refused)
		}
		if account.Held() != 0 || len(g.hosts) != 0 || g.apart.Len() != 0 {
			t.Errorf("at the end %d bytes are held, %d addresses and %d requests are counted", account.Held(), len(g.hosts), g.apart.Len())
		}
	})
}

// TestConnectionsHaveABudget checks that connections are bounded by the memory for them, of which one
// address has half, and that idle ones make room.
func TestConnectionsHaveABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(32 << 20)
		account := b.Open("connections", 0, 4*perConn)
		g := NewGate(Limits{Connections: account})
		enter := func(addr string) (*Conn, bool) {
			time.Sleep(time.Millisecond)
			c := Patient(&from{addr: addr}, 0)
			ok := g.admit(c, time.Now())
			return c, ok
		}
		var conns []*Conn
		for i, step := range []struct {
			addr string
			want bool
		}{{"10.0.0.1:1", true}, {"10.0.0.1:2", true}, {"10.0.0.1:3", false}, {"10.0.0.2:1", true}, {"10.0.0.3:1", true}, {"10.0.0.4:1", false}} {
			c, ok := enter(step.addr)
			Idle(c, false)
			if ok != step.want {
				t.Errorf("step %d: admit(%s) = %v, want %v", i, step.addr, ok, step.want)
			}
			if ok {
				conns = append(conns, c)
			}
		}
		Idle(conns[0], true)
		if _, ok := enter("10.0.0.4:1"); !ok || !conns[0].pass.gone.Load() {
			t.Error("the connection that has been idle for longest makes no room")
		}
		if _, dropped, refused := g.Stats(); dropped != 1 || refused != 2 || account.Held() != 4*perConn {
			t.Errorf("%d dropped, %d refused, %d bytes held", dropped, refused, account.Held())
		}
	})
}

// admitted returns a connection of an address that a gate counts, and a request on it.
func admitted(t testing.TB, g *Gate, addr string) (*Conn, *http.Request) {
	c := Patient(&from{addr: addr}, 0)
	if !g.admit(c, time.Now()) {
		t.Fatal("not admitted")
	}
	Idle(c, false)
	r := httptest.NewRequest("GET", "/", nil).WithContext(Context(t.Context(), c))
	r.Body, r.RemoteAddr = nil, addr
	return c, r
}

// TestRequestsWait checks that by HTTP/1 a request waits for memory for a moment, that one whose client takes
// nothing is cut for it, and that the address of that one leaves the last quarter to others then.
func TestRequestsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		account := budget.New(64<<20).Open("requests", 0, 8*perRequest)
		g := NewGate(Limits{Requests: account})
		known(g, 8, "10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1", "10.0.0.4:1", "10.0.0.7:1")
		ends := make(chan struct{})
		handler := g.Requests(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-ends:
			case <-r.Context().Done():
			}
		}))
		var all sync.WaitGroup
		ask := func(addr string) (c *Conn, code func() int) {
			c, r := admitted(t, g, addr)
			var got atomic.Int64
			all.Go(func() {
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, r)
				got.Store(int64(w.Code))
			})
			synctest.Wait()
			return c, func() int { synctest.Wait(); return int(got.Load()) }
		}
		var stuck []*Conn
		for i := range 8 {
			c, _ := ask([]string{"10.0.0.1:1", "10.0.0.2:1"}[i/4])
			stuck = append(stuck, c)
		}
		_, code := ask("10.0.0.3:1")
		if time.Sleep(100 * time.Millisecond); code() != 0 {
			t.Fatalf("a request without memory does not wait: %d", code())
		}
		if time.Sleep(2 * longestPause); code() != 503 {
			t.Fatalf("a request for which none has come: %d, want 503", code())
		}
		for i, c := range stuck {
			c.pass.request.waiting.Store(time.Now().UnixNano() + int64(i))
		}
		_, code = ask("10.0.0.3:1")
		if time.Sleep(2 * stalled); account.Held() != 8*perRequest || code() != 0 || g.dropped.Load() != 1 {
			t.Fatalf("one was not cut: %d, %d bytes are held, %d cut", code(), account.Held(), g.dropped.Load())
		}
		ask("10.0.0.4:1")
		for _, c := range stuck {
			c.pass.request.waiting.Store(0)
		}
		if g.dropped.Load() != 2 {
			t.Fatalf("%d were cut, want 2", g.dropped.Load())
		}
		for range account.Held() / perRequest {
			ends <- struct{}{}
		}
		ends <- struct{}{} // those that were cut
		ends <- struct{}{}
		all.Wait()
		for i, step := range []struct {
			addr string
			code int
		}{{"10.0.0.5:1", 0}, {"10.0.0.5:2", 0}, {"10.0.0.5:3", 0}, {"10.0.0.5:4", 0}, {"10.0.0.6:1", 0}, {"10.0.0.6:2", 0},
			{stuck[0].RemoteAddr().String(), 503}, {"10.0.0.7:1", 0}, {"10.0.0.7:2", 0}} {
			if _, code := ask(step.addr); step.code == 503 {
				if time.Sleep(3 * longestPause); code() != step.code {
					t.Errorf("step %d, %s: %d, want %d", i, step.addr, code(), step.code)
				}
			} else if code() != step.code {
				t.Errorf("step %d, %s: %d, want %d", i, step.addr, code(), step.code)
			}
		}
		close(ends)
		all.Wait()
		if account.Held() != 0 {
			t.Errorf("at the end %d bytes are held", account.Held())
		}
	})
}

// BenchmarkGate is what a gate adds to a request by HTTP/1.
func BenchmarkGate(b *testing.B) {
	g := NewGate(Limits{Conns: 10, PerHost: 5, Requests: budget.New(64<<20).Open("requests", 0, 8<<20)})
	c, r := admitted(b, g, "10.0.0.1:1")
	handler := g.Requests(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	head := []byte("GET / HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n")
	w := httptest.NewRecorder()
	b.ReportAllocs()
	for b.Loop() {
		Idle(c, true)
		if !g.keep(c, head) {
			b.Fatal("refused")
		}
		Idle(c, false)
		handler.ServeHTTP(w, r)
	}
}

// TestOthersAreNotCutForMore checks that a request of an address which holds much does not end one of an address
// which holds less, though its client takes nothing.
func TestOthersAreNotCutForMore(t *testing.T) {
	g := NewGate(Limits{Requests: budget.New(64<<20).Open("requests", 0, 6*perRequest)})
	ask := func(addr string) (*request, bool) {
		c, _ := admitted(t, g, addr)
		q := &c.pass.request
		q.cost.Store(perRequest)
		return q, g.enforce(q, addr)
	}
	small, _ := ask("10.0.0.1:1")
	small.waiting.Store(time.Now().Add(-time.Hour).UnixNano())
	for i, want := range []bool{true, true, true, false} {
		if _, ok := ask("10.0.0.2:1"); ok != want {
			t.Errorf("request %d of an address: %v, want %v", i, ok, want)
		}
	}
	if small.turn.Load()%2 == 0 || g.dropped.Load() != 0 {
		t.Error("the request of an address that holds less is cut")
	}
}
