package httpcache_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/httpcache"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
	"github.com/summarycache/summarycache/gossip/httpcache/memstore"
)

// shared puts a cache in front of handler. It advertises its objects to its siblings, and finds
// theirs. Serve it at cfg.Service.
func shared(ctx context.Context, cfg gossip.Config, handler http.Handler) (http.Handler, *gossip.Node, error) {
	node, err := gossip.New(cfg)
	if err != nil {
		return nil, nil, err
	}
	cache, err := httpcache.NewMember(httpcache.MemberConfig{Node: node, Open: memstore.Open(1 << 30)})
	if err != nil {
		return nil, nil, err
	}
	if err := node.Join(ctx); err != nil && !errors.Is(err, gossip.ErrUnreachable) {
		node.Close()
		return nil, nil, err
	}
	return cache.Wrap(handler), node, nil
}

// Two servers of one site. A page that the first one has made is not made again by the second.
func ExampleMember_Wrap() {
	heard := make(chan exchange.Event, 10)
	site := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("making", r.URL.Path)
		w.Header().Set("Cache-Control", "public, max-age=60")
		io.WriteString(w, "a page")
	})
	var nodes []*gossip.Node
	var servers []*httptest.Server
	for _, name := range []string{"a", "b"} {
		server := httptest.NewUnstartedServer(nil)
		cfg := gossip.Config{
			Name: name, Bind: "127.0.0.1:0", Secret: []byte("at least 16 bytes, better random"), Service: server.Listener.Addr().String(), Objects: 10_000, Profile: digest.HTTP,
			Join:     []string{"127.0.0.1:1"}, // nobody is there yet
			Advanced: gossip.Advanced{Hooks: gossip.Hooks{Event: func(e exchange.Event) { heard <- e }}}, Logger: slog.New(slog.DiscardHandler),
		}
		for _, n := range nodes {
			cfg.Join = append(cfg.Join, n.Addr())
		}
		handler, node, err := shared(context.Background(), cfg, site)
		if err != nil {
			panic(err)
		}
		defer node.Close()
		server.Config.Handler = handler
		server.Start()
		defer server.Close()
		nodes, servers = append(nodes, node), append(servers, server)
	}
	visit := func(server *httptest.Server) {
		r, err := http.NewRequest(http.MethodGet, server.URL+"/news", nil)
		if err != nil {
			panic(err)
		}
		r.Host = "site.example"
		resp, err := server.Client().Do(r)
		if err != nil {
			panic(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		lines := resp.Header["Cache-Status"]
		for i := range lines {
			lines[i], _, _ = strings.Cut(lines[i], "; ttl=") // which depends on the time
		}
		fmt.Printf("%q, Cache-Status: %q\n", body, lines)
	}

	visit(servers[0])
	for len(nodes[1].Candidates(nil, "GET http://site.example/news")) == 0 {
		<-heard // something of what a holds
	}
	visit(servers[1])
	visit(servers[1])
	// Output:
	// making /news
	// "a page", Cache-Status: ["a; fwd=uri-miss; fwd-status=200; stored"]
	// "a page", Cache-Status: ["a; hit" "b; fwd=uri-miss; fwd-status=200; stored; detail=sibling"]
	// "a page", Cache-Status: ["b; hit"]
}

// Values that are not HTTP responses. The first Get of a value that no cache has loads it.
func ExampleMember_Get() {
	node, err := gossip.New(gossip.Config{
		Name: "a", Bind: "127.0.0.1:0", Service: "127.0.0.1:8080", Objects: 10_000, Profile: digest.HTTP, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		panic(err)
	}
	defer node.Close()
	cache, err := httpcache.NewMember(httpcache.MemberConfig{Node: node, Open: memstore.Open(1 << 30)})
	if err != nil {
		panic(err)
	}
	http.NewServeMux().Handle("/", cache) // and serve that at 127.0.0.1:8080

	for range 2 {
		value, err := cache.Get(context.Background(), "user 17", func(context.Context) ([]byte, time.Time, error) {
			fmt.Println("loading")
			return []byte("Ada"), time.Time{}, nil
		})
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s\n", value)
	}
	// Output:
	// loading
	// Ada
	// Ada
}

// What never changes, such as the output of a build under the hash of its inputs, on disk. It is read as it arrives.
func ExampleMember_Put() {
	node, err := gossip.New(gossip.Config{
		Name: "a", Bind: "127.0.0.1:0", Service: "127.0.0.1:8080", Objects: 10_000, Profile: digest.HTTP, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		panic(err)
	}
	defer node.Close()
	dir, err := os.MkdirTemp("", "builds")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	disk := diskstore.Options{Dir: dir, MaxBytes: 1 << 30, MemoryBytes: 64 << 20}
	cache, err := httpcache.NewMember(httpcache.MemberConfig{Node: node, Open: disk.Open})
	if err != nil {
		panic(err)
	}
	defer cache.Close()

	if err := cache.Put(context.Background(), "build 5f3c", strings.NewReader("a binary")); err != nil {
		panic(err)
	}
	build, err := cache.Open(context.Background(), "build 5f3c", func(context.Context) (io.ReadCloser, time.Time, error) {
		return nil, time.Time{}, errors.New("it is not there")
	})
	if err != nil {
		panic(err)
	}
	defer build.Close()
	io.Copy(os.Stdout, build)
	// Output: a binary
}
