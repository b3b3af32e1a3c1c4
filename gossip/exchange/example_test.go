package exchange_test

import (
	"fmt"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip/exchange"
)

// Two engines, and a loop that carries out the outputs of each at once. A simulator does the same with
// delays and losses, and lets time pass by [exchange.Engine.Next] and [exchange.Engine.Tick].
func ExampleEngine() {
	now := time.Unix(0, 0)
	engines := map[string]*exchange.Engine{
		"a": exchange.New(exchange.Config{Name: "a", Incarnation: 1}, now),
		"b": exchange.New(exchange.Config{Name: "b", Incarnation: 2}, now),
	}
	engines["a"].PeerUp(now, "b", 2)
	engines["b"].PeerUp(now, "a", 1)

	filter, err := digest.NewCountingFilter(digest.Geometry{Bits: 1 << 20, Hashes: 1}, 1)
	if err != nil {
		panic(err)
	}
	for i := range 1000 {
		filter.Add(digest.KeyOfString(0, fmt.Sprint("object ", i)))
	}
	engines["a"].Publish(now, filter.Advance(), nil)

	for range 3 {
		for _, name := range []string{"a", "b"} {
			e := engines[name]
			e.Tick(now)
			out := e.Drain()
			for _, d := range out.Datagrams {
				engines[d.To].HandleDatagram(now, d.Data)
			}
			for _, f := range out.Fetches {
				answer := engines[f.Source].HandleGet(name, f.Get)
				frame := answer.AppendTo(nil)
				t, n, err := exchange.DecodeFrameHeader([exchange.FrameHeader]byte(frame), 1<<20)
				if err != nil {
					panic(err)
				}
				e.FetchDone(now, f.Number, exchange.DecodeAnswer(f, t, frame[exchange.FrameHeader:][:n], digest.Limits{}))
			}
			for _, u := range out.Updates {
				fmt.Println(name, "may find the first object at", u.Peer, u.Filter.MayContain(digest.KeyOfString(0, "object 0")))
			}
		}
	}
	// Output: b may find the first object at a true
}
