package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/conn"
	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
	"github.com/summarycache/summarycache/sim/cputime"
)

// BenchmarkCompress requests a real text that the origin does not compress: first new ones, which
// are fetched, compressed and stored, and then a stored one. CPU time is that of client, peer and
// origin together; B/answer is the size of the body.
func BenchmarkCompress(b *testing.B) {
	text, err := os.ReadFile("../../OPERATING.md")
	if err != nil {
		b.Fatal(err)
	}
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		w.Header().Set("Content-Type", "text/markdown")
		w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		w.Write(text)
	}))
	defer origin.Close()
	target, _ := url.Parse(origin.URL)
	h, err := New(Config{Config: engine.Config{Name: "bench"}, Store: diskstore.Options{Dir: b.TempDir(), MaxBytes: 1 << 30, MemoryBytes: 64 << 20}, Settings: Settings{Origin: target, Rules: rules.Set{{Name: "compress", Compress: []string{"zstd", "gzip"}}}}})
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	peer := httptest.NewUnstartedServer(h)
	peer.Config.ConnContext = conn.Context
	peer.Listener = conn.Listen(peer.Listener, time.Minute, nil)
	peer.Start()
	defer peer.Close()
	c, err := net.Dial("tcp", peer.Listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	from := bufio.NewReaderSize(c, 128<<10)
	asked := 0
	get := func(path, coding string) int64 {
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: bench\r\nAccept-Encoding: %s\r\n\r\n", path, coding)
		resp, err := http.ReadResponse(from, nil)
		if err != nil {
			b.Fatal(err)
		}
		n, err := io.Copy(io.Discard, resp.Body)
		if got := resp.Header.Get("Content-Encoding"); err != nil || got != coding && coding != "identity" {
			b.Fatalf("%q, %v", got, err)
		}
		return n
	}
	for _, coding := range []string{"identity", "gzip", "zstd"} {
		for name, path := range map[string]func() string{"hit": func() string { return "/x" }, "miss": func() string { asked++; return fmt.Sprint("/", asked) }} {
			b.Run(name+"/"+coding, func(b *testing.B) {
				n := get(path(), coding)
				start := cputime.Used()
				for b.Loop() {
					n = get(path(), coding)
				}
				b.ReportMetric(float64(cputime.Used()-start)/float64(b.N), "cpu-ns/op")
				b.ReportMetric(float64(n), "B/answer")
			})
		}
	}
}
