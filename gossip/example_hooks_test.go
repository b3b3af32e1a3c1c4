package gossip_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/exchange"
)

// Hooks inform a program of peers that come and go, and of changes of digests. They run one after
// another, apart from lookups. A hook should do long work elsewhere.
func ExampleHooks() {
	quiet := slog.New(slog.DiscardHandler)
	heard := make(chan string, 10)
	hooks := gossip.Hooks{
		PeerUp: func(m gossip.Member) { heard <- m.Name + " is there" },
		PeerDown: func(m gossip.Member) {
			if m.Left {
				heard <- m.Name + " left"
			} else {
				heard <- m.Name + " died"
			}
		},
		Event: func(e exchange.Event) {
			if e.Kind == exchange.Applied || e.Kind == exchange.Diverged {
				heard <- fmt.Sprintf("%s, keys: %d", e.Kind, e.Head.Keys)
			}
		},
	}
	b, err := gossip.New(gossip.Config{Name: "b", Bind: "127.0.0.1:0", Logger: quiet, Advanced: gossip.Advanced{Hooks: hooks}})
	if err != nil {
		panic(err)
	}
	defer b.Close()

	filter, err := digest.NewSet(digest.Geometry{Bits: 1 << 20, Hashes: 1}, 1)
	if err != nil {
		panic(err)
	}
	held := gossip.NewHoldings(filter)
	held.Add("an object")
	a, err := gossip.New(gossip.Config{Name: "a", Bind: "127.0.0.1:0", Join: []string{b.Addr()}, Holdings: held, Logger: quiet})
	if err != nil {
		panic(err)
	}
	if err := a.Join(context.Background()); err != nil {
		panic(err)
	}
	fmt.Println(<-heard)
	fmt.Println(<-heard)
	if err := a.Leave(context.Background()); err != nil {
		panic(err)
	}
	fmt.Println(<-heard)
	// Output:
	// a is there
	// applied, keys: 1
	// a left
}
