package sibling

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/summarycache/summarycache/gossip/http1"
	"github.com/summarycache/summarycache/gossip/memnet"
)

// A world has a Client, an origin, and siblings with handlers of a test, on a network in memory and
// in virtual time.
type world struct {
	t         *testing.T
	net       *memnet.Network
	dial      func(ctx context.Context, network, addr string) (net.Conn, error)
	questions *http1.Transport
	origins   *http1.Transport
	client    *Client
	servers   []*http.Server

	mu         sync.Mutex
	known      []Candidate // of every object
	distrusted int
	origin     int // requests to it
}

const originURL = "http://10.9.9.9:80"

func newWorld(t *testing.T, c Config) *world {
	w := &world{t: t, net: memnet.New(1)}
	host := w.net.Host("10.8.8.8")
	w.dial = func(ctx context.Context, _, addr string) (net.Conn, error) { return host.Dial(ctx, addr) }
	w.questions, w.origins = http1.ToSiblings(w.dial), &http1.Transport{Dial: w.dial}
	c.Name, c.Locator, c.HTTP = "me", w, w.questions
	var err error
	if w.client, err = New(c); err != nil {
		t.Fatal(err)
	}
	w.serve("10.9.9.9:80", func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.origin++
		w.mu.Unlock()
		io.WriteString(rw, "origin")
	})
	return w
}

func (w *world) serve(addr string, h http.HandlerFunc) {
	ip, _, _ := net.SplitHostPort(addr)
	l, err := w.net.Host(ip).Listen(addr)
	if err != nil {
		w.t.Fatal(err)
	}
	s := &http.Server{Handler: h}
	w.servers = append(w.servers, s)
	go s.Serve(l)
}

// sibling adds a candidate for every object; h nil = it does not listen.
func (w *world) sibling(h http.HandlerFunc) string {
	w.mu.Lock()
	n := len(w.known) + 1
	c := Candidate{Peer: fmt.Sprint("p", n), Service: fmt.Sprintf("10.0.0.%d:80", n)}
	w.known = append(w.known, c)
	w.mu.Unlock()
	if h != nil {
		w.serve(c.Service, h)
	} else {
		w.net.Host(fmt.Sprintf("10.0.0.%d", n))
	}
	return c.Peer
}

func (w *world) Candidates(dst []Candidate, identity string) []Candidate {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append(dst, w.known...)
}

func (w *world) Distrust(string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.distrusted++
}

// recorded returns what the client's Health has counted: "p1:hit" for each hit of p1, and so on.
func (w *world) recorded() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, c := range w.known {
		r := w.client.cfg.Health.Of(c.Peer)
		for range r.Hits {
			all = append(all, c.Peer+":hit")
		}
		for range r.FalseHits {
			all = append(all, c.Peer+":false-hit")
		}
		for range r.Failures {
			all = append(all, c.Peer+":failed")
		}
	}
	return strings.Join(all, " ")
}

func (w *world) asked() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.origin
}

func (w *world) transport() *Transport { return &Transport{Siblings: w.client, Origin: w.origins} }

// get fetches a path of the origin with fields "Name: value".
func (w *world) get(ctx context.Context, path string, fields ...string) (*http.Response, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, originURL+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		r.Header.Add(name, value)
	}
	resp, err := w.transport().RoundTrip(r)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, string(body), err
}

// close ends all goroutines, as a test in a bubble must.
func (w *world) close() {
	w.transport().CloseIdleConnections()
	for _, s := range w.servers {
		s.Close()
	}
	time.Sleep(time.Minute) // until the handlers of canceled requests have ended
}

// holds answers every request with a fresh object.
func holds(body string, fields ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		for _, f := range fields {
			name, value, _ := strings.Cut(f, ": ")
			w.Header().Set(name, value)
		}
		markHit(w.Header(), "p")
		io.WriteString(w, body)
	}
}

func lacks(w http.ResponseWriter, r *http.Request) { answerMiss(w, "p") }
