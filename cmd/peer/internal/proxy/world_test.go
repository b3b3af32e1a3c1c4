package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/summarycache/summarycache/cmd/peer/internal/conn"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
	"github.com/summarycache/summarycache/gossip/invalidation"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// pipes is a network of net.Pipe connections: all of HTTP in one bubble of
// virtual time.
type pipes struct {
	mu        sync.Mutex
	listeners map[string]*pipeListener
}

type pipeListener struct {
	addr  string
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

type pipeAddr string

func (a pipeAddr) Network() string { return "pipe" }
func (a pipeAddr) String() string  { return string(a) }

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}
func (l *pipeListener) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *pipeListener) Addr() net.Addr { return pipeAddr(l.addr) }

func (p *pipes) listen(addr string) *pipeListener {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &pipeListener{addr: addr, conns: make(chan net.Conn), done: make(chan struct{})}
	if p.listeners == nil {
		p.listeners = make(map[string]*pipeListener)
	}
	p.listeners[addr] = l
	return l
}

func (p *pipes) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	p.mu.Lock()
	l := p.listeners[strings.ToLower(addr)]
	p.mu.Unlock()
	refused := &net.OpError{Op: "dial", Net: network, Addr: pipeAddr(addr), Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	if l == nil {
		return nil, refused
	}
	a, b := net.Pipe()
	there := &piped{Conn: b}
	select {
	case l.conns <- there:
		return &piped{Conn: a, there: there}, nil
	case <-l.done:
		return nil, refused
	case <-ctx.Done():
		return nil, &net.OpError{Op: "dial", Net: network, Err: ctx.Err()}
	}
}

// A piped connection says whether the other end was closed. Nothing is ever on its way: writers wait.
type piped struct {
	net.Conn
	there  *piped
	closed atomic.Bool
}

func (p *piped) Close() error { p.closed.Store(true); return p.Conn.Close() }

func (p *piped) Peek() (int, error) {
	if p.there.closed.Load() {
		return 0, io.EOF
	}
	return 0, nil
}

// A locator replaces gossip: it finds at once what other peers advertise, and what a test claims that they do.
type locator struct {
	*world
	self string
}

func (l locator) Candidates(dst []sibling.Candidate, id string) []sibling.Candidate {
	for _, peer := range []string{"a", "b", "c", "d", "e"} {
		if peer != l.self && l.lists(peer, id) {
			dst = append(dst, sibling.Candidate{Peer: peer, Service: address(peer)})
		}
	}
	return dst
}

func (locator) Distrust(string) {}

// lists reports whether a peer advertises an identity.
func (w *world) lists(peer, id string) bool {
	w.mu.Lock()
	h, claimed := w.peers[peer], w.claims[peer+" "+id]
	w.mu.Unlock()
	return claimed || h != nil && slices.Contains(slices.Collect(h.Advertised()), id)
}

// claim lets a peer advertise a path, whether or not the peer has it.
func (w *world) claim(peer, path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.claims[peer+" GET http://"+originHost+path] = true
}

func address(peer string) string { return "peer-" + peer + ":3128" }

// world is an origin and some peers.
type world struct {
	t       *testing.T
	net     pipes
	claims  map[string]bool            // what peers advertise besides what they have
	health  map[string]*sibling.Health // by peer that asks
	origin  *scriptedOrigin
	reverse bool
	peers   map[string]*Handler
	servers []*http.Server
	events  map[string][]Event
	mu      sync.Mutex
	tune    func(*Config)
}

// scriptedOrigin answers with a function that gets the number of earlier requests.
type scriptedOrigin struct {
	mu       sync.Mutex
	requests []*http.Request
	serve    func(w http.ResponseWriter, r *http.Request, n int)
}

func (o *scriptedOrigin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	n := len(o.requests)
	o.requests = append(o.requests, r.Clone(context.Background()))
	o.mu.Unlock()
	o.serve(w, r, n)
}

func (o *scriptedOrigin) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.requests)
}

func (o *scriptedOrigin) last() *http.Request {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.requests[len(o.requests)-1]
}

const originHost = "origin.test"

// newWorld starts an origin and the named peers, which see each other's digests.
func newWorld(t *testing.T, reverse bool, serve func(http.ResponseWriter, *http.Request, int), peers ...string) *world {
	w := &world{t: t, reverse: reverse, origin: &scriptedOrigin{serve: serve}, peers: make(map[string]*Handler), health: make(map[string]*sibling.Health),
		events: make(map[string][]Event), claims: make(map[string]bool)}
	w.serve(originHost+":80", w.origin)
	for _, name := range peers {
		w.start(name, t.TempDir())
	}
	return w
}

func (w *world) serve(addr string, h http.Handler) *http.Server {
	s := &http.Server{Handler: h, ConnContext: conn.Context}
	w.mu.Lock()
	w.servers = append(w.servers, s)
	w.mu.Unlock()
	l := conn.Listen(w.net.listen(addr), 0, nil)
	go s.Serve(l)
	return s
}

func (w *world) start(name, dir string) *Handler {
	c := Config{
		Config: engine.Config{Name: name}, Store: diskstore.Options{Dir: dir, MaxBytes: 64 << 20, MemoryBytes: 4 << 20},
		Locator: locator{w, name},
		Health:  &sibling.Health{},
		Dial:    w.net.dial,
		Observe: func(e Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.events[name] = append(w.events[name], e)
		},
	}
	w.health[name] = c.Health
	c.Advertise, c.Withdraw = func(string) {}, func(string) {} // also what is arriving
	if w.reverse {
		c.Origin = &url.URL{Scheme: "http", Host: originHost}
	}
	if w.tune != nil {
		w.tune(&c)
	}
	h, err := New(c)
	if err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	w.peers[name] = h
	w.mu.Unlock()
	w.serve(address(name), h)
	return h
}

// close ends everything, which a test in a synctest bubble must do.
func (w *world) close() {
	for _, s := range w.servers {
		s.Close()
	}
	for _, h := range w.peers {
		if err := h.Close(); err != nil {
			w.t.Errorf("Close: %v", err)
		}
	}
}

// recorded returns what the peers have counted about each other: "b:hit" for each hit at b, and so
// on.
func (w *world) recorded() string {
	var all []string
	for _, peer := range []string{"a", "b", "c", "d", "e"} {
		for _, h := range w.health {
			r := h.Of(peer)
			for range r.Hits {
				all = append(all, peer+":hit")
			}
			for range r.FalseHits {
				all = append(all, peer+":false-hit")
			}
			for range r.Failures {
				all = append(all, peer+":failed")
			}
		}
	}
	return strings.Join(all, " ")
}

// dial connects to a peer, for a client that observes when bytes arrive.
func (w *world) dial(name string) net.Conn {
	w.t.Helper()
	conn, err := w.net.dial(w.t.Context(), "tcp", address(name))
	if err != nil {
		w.t.Fatal(err)
	}
	return conn
}

// purge removes the stored responses of a URL, or of all URLs that begin with it.
func purge(h *Handler, url string, prefix bool) (int, error) {
	kind := invalidation.Identity
	if prefix {
		kind = invalidation.Prefix
	}
	t, err := h.Target(url, kind)
	if err != nil {
		return 0, err
	}
	return h.Purge(t), nil
}

// reply is a response with its body read.
type reply struct {
	*http.Response
	body string
	err  error // of reading the body
}

// get requests a path of the origin from a peer, with fields "Name: value".
func (w *world) get(peer, path string, fields ...string) reply {
	return w.do(peer, http.MethodGet, path, "", fields...)
}

func (w *world) do(peer, method, path, body string, fields ...string) reply {
	w.t.Helper()
	r, err := w.try(peer, method, path, body, fields...)
	if err != nil {
		w.t.Fatalf("%s %s at %s: %v", method, path, peer, err)
	}
	return r
}

func (w *world) try(peer, method, path, body string, fields ...string) (reply, error) {
	conn, err := w.net.dial(context.Background(), "tcp", address(peer))
	if err != nil {
		return reply{}, err
	}
	defer conn.Close()
	target, host := path, originHost
	if !w.reverse && strings.HasPrefix(path, "/") {
		target = "http://" + originHost + path
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, target, host)
	for _, f := range fields {
		b.WriteString(f + "\r\n")
	}
	if body != "" {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n" + body)
	go io.WriteString(conn, b.String())
	req := &http.Request{Method: method}
	resp, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		return reply{}, err
	}
	got, err := io.ReadAll(resp.Body)
	return reply{Response: resp, body: string(got), err: err}, nil
}

// cached writes a response that stays fresh for a minute.
func cached(body string) func(http.ResponseWriter, *http.Request, int) {
	return func(w http.ResponseWriter, r *http.Request, n int) {
		w.Header().Set("Cache-Control", "max-age=60")
		io.WriteString(w, body)
	}
}

func (r reply) status() string { return strings.Join(r.Header["Cache-Status"], ", ") }
