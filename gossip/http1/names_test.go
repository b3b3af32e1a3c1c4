package http1

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/memnet"
)

// TestNamesThatMove checks whose connections requests use while a name changes.
func TestNamesThatMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.to.Addresses = w.lookup
		ask := func(n int) (from map[string]int) {
			from = map[string]int{}
			for range n { // ten requests a second
				_, body, err := get(w.to, "GET", "http://moves.test/")
				if err != nil {
					body = "error"
				}
				from[body]++
				time.Sleep(time.Second / 10)
			}
			return from
		}
		check := func(step string, got map[string]int, want string, least, most int) {
			t.Helper()
			if got[want] < least || got[want] > most || got["error"] > 0 {
				t.Errorf("%s: %v, want %d to %d from %s", step, got, least, most, want)
			}
		}
		w.set("moves.test", "a")
		check("at first", ask(20), "a", 20, 20)
		w.set("moves.test", "b")
		check("moved, until it is looked up", ask(290), "a", 270, 290)
		check("moved", ask(20), "b", 20, 20)
		if w.lookups != 2 {
			t.Errorf("%d lookups in 33 s, want 2", w.lookups)
		}
		w.set("moves.test") // the name server has lost it: what is known stays
		check("lost", ask(400), "b", 400, 400)
		w.set("moves.test", "a", "b", "c")
		time.Sleep(time.Minute)
		w.to.CloseIdleConnections()
		ask(1)
		from := map[string]int{}
		for range 30 { // a connection each
			w.to.CloseIdleConnections()
			for name, n := range ask(1) {
				from[name] += n
			}
		}
		for _, name := range []string{"a", "b", "c"} {
			check("all addresses in turn", from, name, 8, 12)
		}
		w.stop("c") // refuses
		before := w.refusals
		for range 30 {
			w.to.CloseIdleConnections()
			if from := ask(1); from["error"] > 0 {
				t.Errorf("an address that refuses costs a request: %v", from)
			}
		}
		if n := w.refusals - before; n > 2 {
			t.Errorf("%d connections to an address that refuses, want one in half a minute", n)
		}
		w.silent.Store(true) // and now nobody answers there
		time.Sleep(time.Minute)
		for range 6 {
			w.to.CloseIdleConnections()
			began := time.Now()
			if _, _, err := get(w.to, "GET", "http://moves.test/"); err != nil || time.Since(began) > nextAfter {
				t.Errorf("%v after %v, want the next address after %v", err, time.Since(began), nextAfter)
			}
		}
		w.to.CloseIdleConnections()
		time.Sleep(2 * time.Minute)
	})
}

// TestNamesThatMoveAway: where no known address can be reached, the name may have moved since it was looked up.
func TestNamesThatMoveAway(t *testing.T) {
	for _, silent := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.to.Addresses = w.lookup
			w.silent.Store(silent)
			ask := func(want string, most time.Duration) {
				t.Helper()
				began := time.Now()
				_, body, err := get(w.to, "GET", "http://moves.test/")
				if took := time.Since(began); want == "" && err == nil || want != "" && (body != want || err != nil) || took > most {
					t.Errorf("%q, %v after %v (silent: %v), want %q within %v", body, err, took, silent, want, most)
				}
			}
			w.set("moves.test", "a")
			ask("a", 0)
			w.to.CloseIdleConnections()
			time.Sleep(2 * time.Second)
			w.set("moves.test", "b")
			w.stop("a")
			ask("b", lookAfter)
			w.to.CloseIdleConnections()
			ask("b", 0)
			w.to.CloseIdleConnections()
			w.set("moves.test", "b", "c") // of two, each may be the one
			w.stop("b")
			time.Sleep(2 * time.Second)
			ask("c", lookAfter)
			w.to.CloseIdleConnections()
			w.set("moves.test", "b")
			w.stop("c")
			time.Sleep(2 * time.Second)
			before := w.lookups
			began := time.Now()
			for time.Since(began) < time.Minute {
				ask("", w.to.ConnectTimeout) // nobody is left, and the name server is not asked more than once a second
				time.Sleep(time.Second / 10)
			}
			if n := w.lookups - before; n > 62 {
				t.Errorf("%d lookups in a minute", n)
			}
			w.set("moves.test") // and now it knows no address
			time.Sleep(2 * time.Second)
			ask("", w.to.ConnectTimeout)
			w.to.CloseIdleConnections()
			time.Sleep(time.Minute)
		})
	}
}

// A slow connection is no reason to look up its name at each request.
func TestSlowConnectionsLookUpLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.to.Addresses = w.lookup
		dial := w.to.Dial
		w.to.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			time.Sleep(lookAfter - time.Millisecond)
			return dial(ctx, network, addr)
		}
		w.set("far.test", "a")
		for range 70 {
			if _, _, err := get(w.to, "GET", "http://far.test/"); err != nil {
				t.Error(err)
			}
			w.to.CloseIdleConnections()
		}
		if w.lookups > 3 {
			t.Errorf("%d lookups in 70 s, want 3", w.lookups)
		}
		time.Sleep(time.Minute)
	})
}

// An address that is silent, or that speaks no TLS, costs a request time once in a while, and none its answer, as long as
// the name has another.
func TestAddressesThatFail(t *testing.T) {
	t.Run("silent", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.to.Addresses = w.lookup
			w.set("two.test", "a", "b")
			w.stop("a")
			w.silent.Store(true)
			for range 40 {
				if _, body, err := get(w.to, "GET", "http://two.test/"); err != nil || body != "b" {
					t.Errorf("%q, %v", body, err)
				}
				w.to.CloseIdleConnections()
			}
			if w.refusals > 1 {
				t.Errorf("the silent one was tried %d times for 40 connections", w.refusals)
			}
			time.Sleep(time.Minute)
		})
	})
	t.Run("no TLS", func(t *testing.T) {
		good := newSecure(t, false)
		port := good.Listener.Addr().(*net.TCPAddr).Port
		bad, err := net.Listen("tcp", net.JoinHostPort("127.0.0.2", strconv.Itoa(port)))
		if err != nil {
			t.Skip(err)
		}
		defer bad.Close()
		var tried atomic.Int32
		go func() {
			for {
				c, err := bad.Accept()
				if err != nil {
					return
				}
				tried.Add(1)
				io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
				c.Close()
			}
		}()
		client := &Transport{TLS: good.Client().Transport.(*http.Transport).TLSClientConfig.Clone(),
			Addresses: func(context.Context, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")}, nil
			}}
		client.TLS.ServerName = "example.com"
		for i := range 40 {
			if _, _, err := get(client, "GET", "https://two.test:"+strconv.Itoa(port)); err != nil {
				t.Fatalf("request %d: %v", i, err)
			}
			client.CloseIdleConnections()
		}
		if tried.Load() > 2 {
			t.Errorf("the bad one was tried %d times for 40 connections", tried.Load())
		}
		good.Close()
		if _, _, err := get(client, "GET", "https://two.test:"+strconv.Itoa(port)); err == nil {
			t.Error("none of the two answers")
		}
	})
}

// A world is some servers on a network in memory. Each answers with its name.
type world struct {
	to     *Transport
	net    *memnet.Network
	silent atomic.Bool // connections to servers that were stopped are not answered

	mu       sync.Mutex
	hold     int           // requests that have yet to come
	gate     chan struct{} // before an answer is sent; nil = none is waited for
	conns    []*counted
	names    map[string][]netip.Addr
	stopped  map[string]bool
	lookups  int
	refusals int
}

type counted struct {
	net.Conn
	closed atomic.Bool
}

func (c *counted) Close() error      { c.closed.Store(true); return c.Conn.Close() }
func (c *counted) NetConn() net.Conn { return c.Conn }

var addresses3 = map[string]string{"a": "10.0.0.1", "b": "10.0.0.2", "c": "10.0.0.3"}

func newWorld(t *testing.T) *world {
	w := &world{net: memnet.New(1), names: map[string][]netip.Addr{}, stopped: map[string]bool{}}
	for name, ip := range addresses3 {
		l, err := w.net.Host(ip).Listen(ip + ":80")
		if err != nil {
			t.Fatal(err)
		}
		s := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			w.mu.Lock()
			gate := w.gate
			if w.hold--; w.hold == 0 {
				close(gate)
			}
			w.mu.Unlock()
			if gate != nil {
				<-gate
			}
			io.WriteString(rw, name)
		})}
		go s.Serve(l)
		t.Cleanup(func() { s.Close() })
	}
	w.to = &Transport{ConnectTimeout: 10 * time.Second, Dial: func(ctx context.Context, _, addr string) (net.Conn, error) {
		host, port, _ := net.SplitHostPort(addr)
		if ip := addresses3[host]; ip != "" {
			host = ip
		}
		w.mu.Lock()
		stopped := w.stopped[host]
		if stopped {
			w.refusals++
		}
		w.mu.Unlock()
		switch {
		case stopped && w.silent.Load():
			<-ctx.Done()
			return nil, ctx.Err()
		case stopped:
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		}
		c, err := w.net.Host("10.8.8.8").Dial(ctx, net.JoinHostPort(host, port))
		if err != nil {
			return nil, err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.conns = append(w.conns, &counted{Conn: c})
		return w.conns[len(w.conns)-1], nil
	}}
	return w
}

func (w *world) set(name string, to ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names[name] = nil
	for _, of := range to {
		w.names[name] = append(w.names[name], netip.MustParseAddr(addresses3[of]))
	}
}

func (w *world) lookup(_ context.Context, host string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lookups++
	if len(w.names[host]) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return slices.Clone(w.names[host]), nil
}

func (w *world) stop(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped[addresses3[name]] = true
}

// pool returns how many hosts are known and connections kept.
func (w *world) pool() (hosts, idle int) {
	w.to.pool.mu.Lock()
	defer w.to.pool.mu.Unlock()
	return len(w.to.pool.hosts), w.to.pool.idle
}

func (w *world) dialled() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.conns)
}

func (w *world) open() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		if !c.closed.Load() {
			n++
		}
	}
	return n
}
