package sibling_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// A shelf stands for any HTTP cache that is a transport. It stores every body for ever, and keeps the digest in step.
type shelf struct {
	sync.Map // body by identity
	listed   *gossip.Holdings
	next     http.RoundTripper
}

func (s *shelf) RoundTrip(r *http.Request) (*http.Response, error) {
	if body, ok := s.Load(sibling.Identity(r)); ok {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body.([]byte))), Request: r}, nil
	}
	resp, err := s.next.RoundTrip(r)
	if err != nil || resp.StatusCode != 200 {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if _, had := s.Swap(sibling.Identity(r), body); !had && err == nil {
		s.listed.Add(sibling.Identity(r))
	}
	return resp, err
}

// program starts a cache that asks its siblings, and answers them.
func program(name string, join ...string) (cache *shelf, node *gossip.Node) {
	cache = new(shelf)
	server := httptest.NewServer(&sibling.Handler{Name: name, Cache: cache})
	node, err := gossip.New(gossip.Config{Name: name, Bind: "127.0.0.1:0", Join: join, Secret: []byte("at least 16 bytes, better random"),
		Service: server.Listener.Addr().String(), Objects: 10_000, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	siblings, err := sibling.New(sibling.Config{Name: name, Locator: node})
	if err != nil {
		panic(err)
	}
	cache.listed, cache.next = node.Holdings(), &sibling.Transport{Siblings: siblings} // origins are asked by a client of this module
	return cache, node
}

// Two programs, each with its own cache. The origin gets one request.
func Example() {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "a picture") }))
	a, nodeA := program("a")
	b, nodeB := program("b", nodeA.Addr())
	if err := nodeB.Join(context.Background()); err != nil {
		panic(err)
	}
	for _, cache := range []*shelf{a, b} {
		resp, err := (&http.Client{Transport: cache}).Get(origin.URL + "/logo.png")
		if err != nil {
			panic(err)
		}
		body, _ := io.ReadAll(resp.Body)
		fmt.Printf("%s %q\n", body, resp.Header["Cache-Status"])
		for len(nodeB.Candidates(nil, "GET "+origin.URL+"/logo.png")) == 0 {
			time.Sleep(10 * time.Millisecond) // until b has a's digest
		}
	}
	// Output:
	// a picture []
	// a picture ["a; hit"]
}
