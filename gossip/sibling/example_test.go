package sibling_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/sibling"
)

var secret = []byte("at least 16 bytes, better random")

// A shelf stands for any HTTP cache that is a transport. It stores every body for ever, and keeps
// the digest in step.
type shelf struct {
	sync.Map // body by identity
	listed   *gossip.Holdings
	next     http.RoundTripper
}

func (s *shelf) RoundTrip(r *http.Request) (*http.Response, error) {
	id := sibling.Identity(r)
	if body, ok := s.Load(id); ok {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body.([]byte))), Request: r}, nil
	}
	resp, err := s.next.RoundTrip(r)
	if err != nil || resp.StatusCode != 200 {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if _, had := s.Swap(id, body); !had && err == nil {
		s.listed.Add(id)
	}
	return resp, err
}

// program starts a cache that asks its siblings, and answers them.
func program(name string, join []string, heard func(exchange.Event)) (cache *shelf, node *gossip.Node, stop func()) {
	cache = new(shelf)
	server := httptest.NewServer(&sibling.Handler{Name: name, Cache: cache})
	node, err := gossip.New(gossip.Config{
		Name: name, Bind: "127.0.0.1:0", Join: join, Secret: secret, Service: server.Listener.Addr().String(), Objects: 10_000,
		Advanced: gossip.Advanced{Hooks: gossip.Hooks{Event: heard}}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		panic(err)
	}
	siblings, err := sibling.New(sibling.Config{Name: name, Locator: node})
	if err != nil {
		panic(err)
	}
	cache.listed = node.Holdings()
	transport := &sibling.Transport{Siblings: siblings} // the origin's is http.DefaultTransport
	cache.next = transport
	return cache, node, func() { transport.CloseIdleConnections(); node.Close(); server.Close() }
}

// Two programs, each with its own cache. The origin gets one request.
func Example() {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("origin: asked for", r.URL)
		io.WriteString(w, "a picture")
	}))
	defer origin.Close()

	a, nodeA, stop := program("a", nil, nil)
	defer stop()
	get(a, origin.URL+"/logo.png")

	heard := make(chan exchange.Event, 10)
	b, nodeB, stop := program("b", []string{nodeA.Addr()}, func(e exchange.Event) { heard <- e })
	defer stop()
	if err := nodeB.Join(context.Background()); err != nil {
		panic(err)
	}
	for len(nodeB.Candidates(nil, "GET "+origin.URL+"/logo.png")) == 0 {
		<-heard // something of a's digest
	}
	get(b, origin.URL+"/logo.png")
	// Output:
	// origin: asked for /logo.png
	// "a picture", Cache-Status: []
	// "a picture", Cache-Status: ["a; hit"]
}

func get(cache http.RoundTripper, url string) { show((&http.Client{Transport: cache}).Get(url)) }

// show requests a URL and prints the answer.
func show(resp *http.Response, err error) {
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		panic(err)
	}
	lines := resp.Header["Cache-Status"]
	for i := range lines {
		lines[i], _, _ = strings.Cut(lines[i], "; ttl=") // which depends on the time
	}
	fmt.Printf("%q, Cache-Status: %q\n", body, lines)
}
