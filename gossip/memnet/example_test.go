package memnet_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/memnet"
)

// Two peers without a socket, on a network that loses a fifth of all packets. In a test, put it into a
// bubble of testing/synctest, so that waits take no time.
func Example() {
	net := memnet.New(1)
	net.SetConditions(memnet.Conditions{Loss: 0.2, Latency: time.Millisecond})
	quiet := slog.New(slog.DiscardHandler)

	a, err := gossip.New(gossip.Config{Name: "a", Bind: "10.0.0.1:7946", Service: "10.0.0.1:80", Objects: 100,
		Advanced: gossip.Advanced{Network: net.Host("10.0.0.1")}, Logger: quiet})
	if err != nil {
		panic(err)
	}
	defer a.Close()
	a.Holdings().Add("an object")
	applied := make(chan exchange.Event, 10)
	b, err := gossip.New(gossip.Config{Name: "b", Bind: "10.0.0.2:7946", Join: []string{a.Addr()},
		Advanced: gossip.Advanced{Network: net.Host("10.0.0.2"), Hooks: gossip.Hooks{Event: func(e exchange.Event) { applied <- e }}}, Logger: quiet})
	if err != nil {
		panic(err)
	}
	defer b.Close()
	if err := b.Join(context.Background()); err != nil {
		panic(err)
	}
	for len(b.Candidates(nil, "an object")) == 0 {
		<-applied // something of what a holds
	}
	fmt.Println(b.Candidates(nil, "an object")[0].Peer, "has it")

	net.Partition([]string{"10.0.0.1"}, []string{"10.0.0.2"})
	_, err = net.Host("10.0.0.2").ListenPacket("10.0.0.2:7946")
	fmt.Println(err)
	// Output:
	// a has it
	// listen udp 10.0.0.2:7946: bind: address already in use
}
