package conn

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/budget"
)

// from is a connection of an address.
type from struct {
	net.Conn
	addr   string
	closed bool
}

func (c *from) RemoteAddr() net.Addr {
	a, _ := net.ResolveTCPAddr("tcp", c.addr)
	return a
}

func (c *from) Close() error { c.closed = true; return nil }

func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(Limits{Conns: 4, PerHost: 2})
		enter := func(addr string) (*Conn, *from, bool) {
			time.Sleep(10 * time.Millisecond)
			below := &from{addr: addr}
			c := Patient(below, 0)
			return c, below, g.admit(c, time.Now())
		}
		busy := func(addr string) *Conn {
			t.Helper()
			c, _, ok := enter(addr)
			if !ok {
				t.Fatalf("%s is refused", addr)
			}
			Idle(c, false)
			return c
		}
		a1, a2 := busy("10.0.0.1:1"), busy("10.0.0.1:2")
		if _, _, ok := enter("10.0.0.1:3"); ok {
			t.Error("an address has more than it may, all of them with a request")
		}
		b1 := busy("10.0.0.2:1")
		Idle(a1, true)
		time.Sleep(time.Second)
		Idle(b1, true)
		if _, _, ok := enter("10.0.0.1:3"); !ok || !a1.Conn.(*from).closed || a2.Conn.(*from).closed {
			t.Error("the idle connection of an address does not make room for another of it")
		}
		busy("10.0.0.3:1")
		silent, _, ok := enter("10.0.0.4:1")
		if !ok || b1.Conn.(*from).closed {
			t.Error("a silent connection does not make room at once, before an idle one")
		}
		Idle(silent, false)
		if _, _, ok := enter("10.0.0.5:1"); !ok || !b1.Conn.(*from).closed {
			t.Error("the connection that has been idle for longest does not make room")
		}
		open, dropped, refused := g.Stats()
		if open != 4 || dropped != 3 || refused != 1 {
			t.Errorf("Stats() = %d, %d, %d, want 4, 3, 1", open, dropped, refused)
		}
		for _, c := range slices.Clone(g.conns.list) {
			c.Close()
			c.Close()
		}
		if open, _, _ := g.Stats(); open != 0 || len(g.hosts) != 0 || g.conns.Len() != 0 {
			t.Errorf("%d connections, %d addresses, %d idle are left", open, len(g.hosts), g.conns.Len())
		}
	})
}

// arriving is a listener that accepts connections in turn.
type arriving struct {
	net.Listener
	waiting []*from
}

func (q *arriving) Accept() (net.Conn, error) {
	if len(q.waiting) == 0 {
		return nil, net.ErrClosed
	}
	c := q.waiting[0]
	q.waiting = q.waiting[1:]
	return c, nil
}

// TestAccept: what the gate refuses is closed, and the next is accepted.
func TestAccept(t *testing.T) {
	all := []*from{{addr: "10.0.0.1:1"}, {addr: "10.0.0.1:2"}, {addr: "10.0.0.1:3"}, {addr: "10.0.0.2:1"}}
	l := Listen(&arriving{waiting: all}, 0, NewGate(Limits{Conns: 9, PerHost: 1}))
	for _, want := range []*from{all[0], all[3]} {
		c, err := l.Accept()
		if err != nil || c.RemoteAddr().String() != want.addr || want.closed {
			t.Fatalf("Accept() = %v, %v, want that of %s", c, err, want.addr)
		}
		Idle(c, false)
	}
	if _, err := l.Accept(); err == nil {
		t.Error("Accept() of a closed listener = nil")
	}
	for i, want := range []bool{false, true, true, false} {
		if all[i].closed != want {
			t.Errorf("the connection from %s is closed: %v, want %v", all[i].addr, all[i].closed, want)
		}
	}
}

func TestOneAddress(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		one  bool
	}{
		{"10.0.0.1:1", "10.0.0.1:2", true},
		{"10.0.0.1:1", "[::ffff:10.0.0.1]:2", true},
		{"10.0.0.1:1", "10.0.0.2:1", false},
		{"[2001:db8::1]:1", "[2001:db8::ffff:1]:1", true},
		{"[2001:db8::1]:1", "[2001:db8:0:1::1]:1", false},
	} {
		if got := prefixOf((&from{addr: tt.a}).RemoteAddr().String()) == prefixOf((&from{addr: tt.b}).RemoteAddr().String()); got != tt.one {
			t.Errorf("%s and %s count as one: %v", tt.a, tt.b, got)
		}
	}
}

// Whatever the number of descriptors, clients with an origin or a file each leave the
// others theirs.
func TestShares(t *testing.T) {
	for _, descriptors := range []int{256, 1024, 4096, 65536, 1 << 20} {
		for _, asked := range []int{0, 100, 1 << 20} {
			s := share(asked, descriptors)
			if sum := 2*s.Clients.Conns + s.Admin.Conns + s.Gossip.Conns + own(descriptors); sum > descriptors {
				t.Errorf("%d of %d descriptors", sum, descriptors)
			}
			if s.Clients.Conns == 0 || s.Clients.PerHost == 0 || s.Gossip.Conns == 0 || asked == 100 && descriptors > 512 && s.Clients.Conns != 100 {
				t.Errorf("share(%d, %d) = %+v", asked, descriptors, s)
			}
		}
	}
}

// TestCalm checks that a gate is calm when no request has been under way for long, by HTTP/1 and HTTP/2, however many
// short ones there are, and that waiting for that has an end.
func TestCalm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(Limits{Requests: budget.New(64<<20).Open("requests", 0, 8*perRequest)})
		handler := g.Requests(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			took, _ := time.ParseDuration(r.URL.Path[1:])
			time.Sleep(took)
		}))
		_, short := admitted(t, g, "10.0.0.1:1")
		short.URL.Path = "/30ms"
		var all sync.WaitGroup
		done := make(chan struct{})
		all.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					handler.ServeHTTP(httptest.NewRecorder(), short)
				}
			}
		})
		calm := func(limit time.Duration) time.Duration {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			began := time.Now()
			g.Calm(ctx)
			return time.Since(began)
		}
		if took := calm(time.Minute); took > brief {
			t.Errorf("calm after %v, with short requests only", took)
		}
		for _, version := range []int{1, 2} {
			_, long := admitted(t, g, "10.0.0.2:1")
			if long.URL.Path, long.ProtoMajor = "/2s", version; version == 2 {
				long = long.WithContext(t.Context())
			}
			all.Go(func() { handler.ServeHTTP(httptest.NewRecorder(), long) })
			synctest.Wait()
			if took := calm(time.Second); took != time.Second {
				t.Errorf("HTTP/%d: calm after %v, with a request of 2 s", version, took)
			}
			if took := calm(time.Minute); took < time.Second || took > time.Second+2*brief {
				t.Errorf("HTTP/%d: calm after another %v, with a request of 1 s", version, took)
			}
		}
		close(done)
		all.Wait()
	})
}
