package feed_test

import (
	"fmt"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/feed"
	"github.com/summarycache/summarycache/digest/index"
)

// Example has two functions instead of a bus such as NATS, Redis or Kafka: one delivers
// messages to all replicas, and one carries a request to the publisher and its answer back.
func Example() {
	held, _ := digest.PlanSet(10_000, 0.001, digest.Opaque, 0, 1) // no seed; 1: greater in each life of the cache
	var toAll func(message []byte)
	var ask func(question string) (answer []byte)

	// In the cache that publishes, once a second:
	publisher := feed.NewPublisher(held, 4<<20)
	publish := func() { toAll(publisher.Next()) }
	// and on request:
	ask = func(question string) []byte {
		version, _ := digest.ParseVersion(question)
		return publisher.Since(version)
	}

	// In one that listens, for each message:
	replica, peers := feed.NewReplica(digest.Limits{}), index.New()
	handle := func(message []byte) {
		switch delta, changed, err := replica.Handle(message); {
		case err != nil:
			fmt.Println(err)
		case changed && delta != nil:
			peers.Apply(index.Change{Peer: "west", Delta: delta, Next: replica.Filter()})
		case changed:
			peers.Set("west", replica.Filter())
		}
	}
	// and now and then:
	catchUp := func() {
		if since, any := replica.Needs(); any {
			handle(ask(since.String()))
		}
	}

	toAll = func([]byte) {} // it is lost
	held.Add(1 << 60)
	publish()
	toAll = handle
	held.Add(2 << 60)
	publish()
	fmt.Println(len(peers.Lookup(nil, 2<<60)), "peers may have it")
	catchUp()
	fmt.Println(len(peers.Lookup(nil, 2<<60)), "peer may have it")
	// Output:
	// 0 peers may have it
	// 1 peer may have it
}
