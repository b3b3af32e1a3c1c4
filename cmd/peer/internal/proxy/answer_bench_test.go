package proxy

import (
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/conn"
	"github.com/summarycache/summarycache/gossip/httpcache"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
	"github.com/summarycache/summarycache/gossip/sibling"
	"github.com/summarycache/summarycache/sim/cputime"
)

// BenchmarkSiblingAnswer measures a miss that a sibling answers, with the client, both peers and
// their connections: without the checksums of the body's blocks, with them, and with the additional
// cost of verifying a signed statement (SHA-256 of the body and one Ed25519 signature). Compare
// cpu-ns/op.
func BenchmarkSiblingAnswer(b *testing.B) {
	const objects = 128
	for _, size := range []int{1 << 10, 64 << 10} {
		body := make([]byte, size)
		origin := roundTripper(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, ContentLength: int64(size), Header: http.Header{"Cache-Control": {"max-age=3600"},
				"Etag": {`"a"`}, "Content-Type": {"text/plain"}}, Body: io.NopCloser(io.LimitReader(zeroes{}, int64(size)))}, nil
		})
		start := func(name string, l sibling.Locator, by http.RoundTripper) (*Handler, string) {
			h, err := New(Config{Config: httpcache.Config{Name: name}, Store: diskstore.Options{Dir: b.TempDir(), MaxBytes: 1 << 30, MemoryBytes: 64 << 20}, OriginTransport: origin, Locator: l, SiblingTransport: by})
			if err != nil {
				b.Fatal(err)
			}
			s := httptest.NewUnstartedServer(h)
			s.Config.ConnContext = conn.Context
			s.Listener = conn.Listen(s.Listener, time.Minute, nil)
			s.Start()
			b.Cleanup(func() { s.Close(); h.Close() })
			return h, s.Listener.Addr().String()
		}
		holder, addr := start("holder", nil, nil)
		url := func(n int) string { return fmt.Sprintf("http://origin.test/%d", n%objects) }
		for n := range objects {
			holder.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", url(n), nil))
		}
		for holder.Store().Stats().Objects < objects {
			time.Sleep(time.Millisecond)
		}
		public, private, err := ed25519.GenerateKey(nil)
		if err != nil {
			b.Fatal(err)
		}
		statement := make([]byte, 200)
		signature := ed25519.Sign(private, statement)
		transport := sibling.NewHTTPTransport(nil)
		without := roundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := transport.RoundTrip(r)
			if err == nil {
				delete(resp.Header, "Summarycache-Body")
			}
			return resp, err
		})
		for _, way := range []struct {
			name   string
			by     http.RoundTripper
			signed bool
		}{{"unchecked", without, false}, {"checked", transport, false}, {"signed", transport, true}} {
			asker, front := start("asker", always{addr}, way.by)
			b.Run(fmt.Sprintf("size=%dk/%s", size>>10, way.name), func(b *testing.B) {
				c, err := net.Dial("tcp", front)
				if err != nil {
					b.Fatal(err)
				}
				defer c.Close()
				client := newThrifty(c)
				b.ReportAllocs()
				before := asker.Counters().SiblingHits
				began := cputime.Used()
				n := 0
				for ; b.Loop(); n++ {
					asker.Store().Delete("GET " + url(n+objects/2))
					if err := client.get(url(n), size); err != nil {
						b.Fatal(err)
					}
					if way.signed {
						sha256.Sum256(body)
						if !ed25519.Verify(public, statement, signature) {
							b.Fatal("not its signature")
						}
					}
				}
				b.ReportMetric(float64(cputime.Used()-began)/float64(n), "cpu-ns/op")
				if got := asker.Counters().SiblingHits - before; got < uint64(n)*9/10 {
					b.Fatalf("%d of %d came from the sibling", got, n)
				}
			})
		}
	}
}

// always is a locator that finds every object at one peer.
type always struct{ addr string }

func (a always) Candidates(dst []sibling.Candidate, _ string) []sibling.Candidate {
	return append(dst, sibling.Candidate{Peer: "holder", Service: a.addr})
}

func (always) Distrust(string) {}
