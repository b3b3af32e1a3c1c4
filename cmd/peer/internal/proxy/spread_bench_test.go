package proxy

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/conn"
	"github.com/summarycache/summarycache/gossip/httpcache"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
	"github.com/summarycache/summarycache/sim/cputime"
)

// BenchmarkHitSpread requests 100,000 stored objects of 1 KiB in random order over one connection,
// and for comparison only one of them. The difference is the cost of the store and the decoder.
func BenchmarkHitSpread(b *testing.B) {
	const objects, size = 100_000, 1 << 10
	h, err := New(Config{Settings: Settings{Origin: &url.URL{Scheme: "http", Host: "bench"}}, Config: httpcache.Config{Name: "bench"}, Store: diskstore.Options{Dir: b.TempDir(), MaxBytes: 1 << 30, MemoryBytes: 64 << 20}, OriginTransport: answering{"max-age=3600", size}})
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	for i := range objects {
		h.ServeHTTP(discard{http.Header{}}, httptest.NewRequest("GET", fmt.Sprint("/", i), nil))
	}
	peer := httptest.NewUnstartedServer(h)
	peer.Config.ConnContext = conn.Context
	peer.Listener = conn.Listen(peer.Listener, time.Minute, nil)
	peer.Start()
	defer peer.Close()
	for _, among := range []int{1, objects} {
		b.Run(fmt.Sprintf("objects=%d", among), func(b *testing.B) {
			c, err := net.Dial("tcp", peer.Listener.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			client, random := newThrifty(c), rand.New(rand.NewPCG(1, 2))
			b.ReportAllocs()
			start, n := cputime.Used(), 0
			for ; b.Loop(); n++ {
				if err := client.get(fmt.Sprint("/", random.IntN(among)), size); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(cputime.Used()-start)/float64(n), "cpu-ns/op")
		})
	}
	if got := h.Counters().OriginFetches; got != objects {
		b.Fatalf("%d of %d came from the origin once", got, objects)
	}
}
