package gossip_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/exchange"
)

// Two peers on one machine. The first holds an object, the second learns of it.
func ExampleNew() {
	secret := []byte("at least 16 bytes, better random")
	quiet := slog.New(slog.DiscardHandler)

	a, err := gossip.New(gossip.Config{
		Name: "a", Bind: "127.0.0.1:0", Secret: secret, Service: "127.0.0.1:8080", Objects: 100_000, Logger: quiet,
	})
	if err != nil {
		panic(err)
	}
	defer a.Close()
	a.Holdings().Add("GET http://example.com/")

	applied := make(chan exchange.Event, 10)
	b, err := gossip.New(gossip.Config{
		Name: "b", Bind: "127.0.0.1:0", Secret: secret, Join: []string{a.Addr()}, Logger: quiet,
		Advanced: gossip.Advanced{Hooks: gossip.Hooks{Event: func(ev exchange.Event) { applied <- ev }}},
	})
	if err != nil {
		panic(err)
	}
	defer b.Close()
	if err := b.Join(context.Background()); err != nil {
		panic(err)
	}
	for len(b.Candidates(nil, "GET http://example.com/")) == 0 {
		<-applied // something of what a holds
	}

	for _, c := range b.Candidates(nil, "GET http://example.com/") {
		fmt.Println("ask", c.Peer, "at", c.Service)
	}
	// Output: ask a at 127.0.0.1:8080
}
