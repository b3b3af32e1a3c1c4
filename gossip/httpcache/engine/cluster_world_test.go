package engine

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/http1"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
	"github.com/summarycache/summarycache/gossip/memnet"
	"github.com/summarycache/summarycache/gossip/rfc9111"
	"github.com/summarycache/summarycache/gossip/sibling"
)

const originHost = "origin.test"

// A cluster is an origin, caches that are siblings of each other, and their clients, on a network in memory.
type cluster struct {
	t       *testing.T
	net     *memnet.Network
	digests digests
	origin  *scriptedOrigin
	peers   map[string]*peer
	tune    func(*peerConfig) // called for each peer that is started

	toSiblings func(ctx context.Context, network, name string) (net.Conn, error) // nil = connect

	mu      sync.Mutex
	hosts   map[string]*memnet.Host // by name and port
	servers []*http.Server
}

// A peer is one cache, which serves clients and siblings.
type peer struct {
	*Cache
	store    diskstore.Store
	siblings *sibling.Client
	health   *sibling.Health
	idle     []*http1.Transport

	mu      sync.Mutex
	results []Result // of all requests
}

// peerConfig says what a peer works with.
type peerConfig struct {
	Config
	Store diskstore.Options
}

// newCluster starts an origin and the named peers, which see each other's digests.
func newCluster(t *testing.T, serve func(http.ResponseWriter, *http.Request, int), peers ...string) *cluster {
	w := &cluster{t: t, net: memnet.New(1), origin: &scriptedOrigin{serve: serve}, peers: map[string]*peer{},
		hosts:   map[string]*memnet.Host{},
		digests: digests{listed: map[string]map[string]int{}, addr: map[string]string{}, dead: map[string]bool{}}}
	w.serve(originHost+":80", w.origin)
	for _, name := range peers {
		w.start(name, t.TempDir())
	}
	return w
}

// serve starts a server on a host of its own.
func (w *cluster) serve(name string, h http.Handler) {
	w.mu.Lock()
	defer w.mu.Unlock()
	host := w.net.Host(fmt.Sprintf("10.0.0.%d", len(w.servers)+1))
	l, err := host.Listen(host.IP() + ":80")
	if err != nil {
		w.t.Fatal(err)
	}
	s := &http.Server{Handler: h}
	w.hosts[name], w.servers = host, append(w.servers, s)
	go s.Serve(l)
}

// connect dials by the name of a server.
func (w *cluster) connect(ctx context.Context, network, name string) (net.Conn, error) {
	w.mu.Lock()
	host := w.hosts[name]
	w.mu.Unlock()
	if host == nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	return w.net.Host("10.8.8.8").Dial(ctx, host.IP()+":80")
}

// start starts a peer over the store in dir.
func (w *cluster) start(name, dir string) *peer {
	w.t.Helper()
	p := &peer{health: new(sibling.Health)}
	origins := &http1.Transport{Dial: w.connect, HeaderTimeout: time.Minute}
	toSiblings := w.connect
	if w.toSiblings != nil {
		toSiblings = w.toSiblings
	}
	siblings := http1.ToSiblings(toSiblings)
	p.idle = []*http1.Transport{origins, siblings}
	var err error
	p.siblings, err = sibling.New(sibling.Config{Name: name, Locator: locator{&w.digests, name},
		HTTP: siblings, Health: p.health})
	if err != nil {
		w.t.Fatal(err)
	}
	c := peerConfig{Store: diskstore.Options{Dir: dir, MaxBytes: 64 << 20, MemoryBytes: 4 << 20},
		Config: Config{Name: name, Transport: origins, Siblings: p.siblings,
			Tuning: Tuning{BetweenBytesTimeout: time.Minute, SendTimeout: time.Minute}}}
	c.Advertise, c.Withdraw = w.digests.hooks(name)
	if w.tune != nil {
		w.tune(&c)
	}
	if c.Open == nil {
		c.Open = c.Store.Open
	}
	if p.Cache, err = New(c.Config); err != nil {
		w.t.Fatal(err)
	}
	p.store, _ = p.Cache.store.(diskstore.Store)
	w.peers[name] = p
	w.serve(w.digests.address(name), p)
	return p
}

// ServeHTTP answers clients and siblings.
func (p *peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Header = r.Header.Clone()
	rfc9111.RemoveHopByHop(r.Header)
	res := p.Serve(w, r)
	p.mu.Lock()
	p.results = append(p.results, res)
	p.mu.Unlock()
	if res.Broken {
		panic(http.ErrAbortHandler)
	}
}

// outcome returns how many requests were answered in this way.
func (p *peer) outcome(o Outcome) int {
	return p.requests(func(r Result) bool { return r.Outcome == o })
}

// brokenBodies returns how many answers were cut short.
func (p *peer) brokenBodies() int { return p.requests(func(r Result) bool { return r.Broken }) }

func (p *peer) requests(are func(Result) bool) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.results {
		if are(r) {
			n++
		}
	}
	return n
}

// close ends all goroutines, as a test in a bubble must.
func (w *cluster) close() {
	for _, s := range w.servers {
		s.Close()
	}
	for _, p := range w.peers {
		if err := p.Close(); err != nil {
			w.t.Errorf("Close: %v", err)
		}
		for _, t := range p.idle {
			t.CloseIdleConnections()
		}
	}
}

// recorded returns what the peers have counted about each other: "b:hit" for each hit at b, and so on.
func (w *cluster) recorded() string {
	var all []string
	for _, name := range peerNames {
		for _, p := range w.peers {
			r := p.health.Of(name)
			for range r.Hits {
				all = append(all, name+":hit")
			}
			for range r.FalseHits {
				all = append(all, name+":false-hit")
			}
			for range r.Failures {
				all = append(all, name+":failed")
			}
		}
	}
	return strings.Join(all, " ")
}

// fakePeer starts a sibling with a handler of the test.
func (w *cluster) fakePeer(name string, h http.HandlerFunc) { w.serve(w.digests.address(name), h) }

// claim adds a path to the digest of a peer, whether or not the peer has it.
func (w *cluster) claim(peer, path string) {
	advertise, _ := w.digests.hooks(peer)
	advertise("GET http://" + originHost + path)
}

// others lets a peer ask another for stale copies.
func (w *cluster) others(name string) func() []sibling.Peer {
	return func() []sibling.Peer { return []sibling.Peer{{Name: name, Addr: w.digests.address(name)}} }
}

// A scriptedOrigin answers with a function that gets the number of earlier requests.
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

var peerNames = []string{"a", "b", "c", "d", "e"}

// digests replaces gossip: it knows at once and exactly what each peer advertises, unless a test adds a false entry.
type digests struct {
	mu     sync.Mutex
	listed map[string]map[string]int // by peer, by identity
	addr   map[string]string
	dead   map[string]bool // the peers whose objects nobody finds
}

// address returns where a peer is or will be served.
func (d *digests) address(peer string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.addr[peer] = cmp.Or(d.addr[peer], "peer-"+peer+":80")
	return d.addr[peer]
}

func (d *digests) hooks(peer string) (advertise, withdraw func(string)) {
	add := func(n int) func(string) {
		return func(id string) {
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.listed[peer] == nil {
				d.listed[peer] = make(map[string]int)
			}
			if d.listed[peer][id] += n; d.listed[peer][id] == 0 {
				delete(d.listed[peer], id)
			}
		}
	}
	return add(1), add(-1)
}

func (d *digests) lists(peer, id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.listed[peer][id] > 0
}

// A locator is one peer's view of the digests of all others.
type locator struct {
	*digests
	self string
}

func (l locator) Candidates(dst []sibling.Candidate, id string) []sibling.Candidate {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range peerNames {
		if name != l.self && l.listed[name][id] > 0 && !l.dead[name] {
			dst = append(dst, sibling.Candidate{Peer: name, Service: cmp.Or(l.addr[name], "nowhere:80")})
		}
	}
	return dst
}

func (locator) Distrust(string) {}

// A reply is a response with its body read.
type reply struct {
	*http.Response
	body string
	err  error // of reading the body
}

func (r reply) status() string { return strings.Join(r.Header["Cache-Status"], ", ") }

// get requests a path of the origin from a peer, with fields "Name: value".
func (w *cluster) get(peer, path string, fields ...string) reply {
	w.t.Helper()
	return w.do(peer, http.MethodGet, path, "", fields...)
}

func (w *cluster) do(peer, method, path, body string, fields ...string) reply {
	w.t.Helper()
	r, err := w.try(peer, method, path, body, fields...)
	if err != nil {
		w.t.Fatalf("%s %s at %s: %v", method, path, peer, err)
	}
	return r
}

func (w *cluster) try(peer, method, path, body string, fields ...string) (reply, error) {
	c := w.dial(peer)
	defer c.Close()
	if strings.HasPrefix(path, "/") {
		path = "http://" + originHost + path
	}
	if body != "" {
		fields = append(fields, fmt.Sprint("Content-Length: ", len(body)))
	}
	resp, err := ask(c, method, path, body, fields...)
	if err != nil {
		return reply{}, err
	}
	got, err := io.ReadAll(resp.Body)
	return reply{Response: resp, body: string(got), err: err}, nil
}

// ask sends a request and returns the response, whose body is still to be read.
func ask(c net.Conn, method, url, body string, fields ...string) (*http.Response, error) {
	rest := strings.Join(append(fields, ""), "\r\n")
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", method, url, originHost, rest)
	if _, err := io.WriteString(c, head+body); err != nil {
		return nil, err
	}
	return http.ReadResponse(bufio.NewReaderSize(c, 1000), &http.Request{Method: method})
}

// dial connects to a peer, for a client that observes when bytes arrive.
func (w *cluster) dial(name string) net.Conn {
	w.t.Helper()
	c, err := w.connect(w.t.Context(), "tcp", w.digests.address(name))
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// open requests /x from a peer over a connection of its own, for a client that reads the body itself.
func (w *cluster) open(peer string, fields ...string) (net.Conn, *http.Response, error) {
	c := w.dial(peer)
	resp, err := ask(c, http.MethodGet, "http://"+originHost+"/x", "", fields...)
	if err != nil {
		c.Close()
	}
	return c, resp, err
}

// learnPace gets an object, and waits until the peer has noted the origin's pace, which is after its client has
// the body.
func (w *cluster) learnPace(peer, path string) {
	w.get(peer, path)
	synctest.Wait()
}

// cached writes a response that stays fresh for a minute.
func cached(body string) func(http.ResponseWriter, *http.Request, int) {
	return func(w http.ResponseWriter, r *http.Request, n int) {
		w.Header().Set("Cache-Control", "max-age=60")
		io.WriteString(w, body)
	}
}

// answers answers each request after a time, with these fields and a body that tells how many came before it.
func answers(delay time.Duration, fields ...string) func(http.ResponseWriter, *http.Request, int) {
	return func(w http.ResponseWriter, r *http.Request, n int) {
		time.Sleep(delay)
		for _, f := range fields {
			name, value, _ := strings.Cut(f, ": ")
			w.Header().Set(name, value)
		}
		fmt.Fprint(w, "n=", n)
	}
}
