package gossip_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/exchange"
)

// Two peers on one machine. The first holds an object, the second learns of it.
func ExampleNew() {
	secret := []byte("at least 16 bytes, better random")
	seed := digest.SeedFrom(secret)
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))

	filter, err := digest.NewCountingFilter(digest.Geometry{Bits: 1 << 20, Hashes: 1, Seed: seed}, 1)
	if err != nil {
		panic(err)
	}
	filter.Add(digest.KeyOfString(seed, "GET http://example.com/"))
	a, err := gossip.New(gossip.Config{
		Name: "a", Bind: "127.0.0.1:0", Secret: secret, Service: "127.0.0.1:8080", Filter: filter, Logger: quiet,
	})
	if err != nil {
		panic(err)
	}
	defer a.Close()

	applied := make(chan exchange.Event, 10)
	b, err := gossip.New(gossip.Config{
		Name: "b", Bind: "127.0.0.1:0", Secret: secret, Join: []string{a.Addr()}, Logger: quiet,
		Hooks: gossip.Hooks{Event: func(ev exchange.Event) { applied <- ev }},
	})
	if err != nil {
		panic(err)
	}
	defer b.Close()
	if err := b.Join(context.Background()); err != nil {
		panic(err)
	}
	<-applied

	for _, c := range b.Candidates(nil, digest.KeyOfString(seed, "GET http://example.com/")) {
		fmt.Println("ask", c.Peer, "at", c.Service)
	}
	// Output: ask a at 127.0.0.1:8080
}
