//go:build unix

package http1

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestMain is also the server of BenchmarkTransport, which is another process, so that the time of the client is its own.
func TestMain(m *testing.M) {
	if os.Getenv("HTTP1_SERVER") == "" {
		os.Exit(m.Run())
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	answer := []byte("HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Sun, 29 Nov 2026 12:00:00 GMT\r\nContent-Type: text/plain\r\nContent-Length: 1024\r\n" +
		"Last-Modified: Sun, 29 Nov 2026 11:00:00 GMT\r\nConnection: keep-alive\r\nETag: \"abc\"\r\nCache-Control: max-age=600\r\nAccept-Ranges: bytes\r\n\r\n" +
		strings.Repeat("x", 1024))
	go func() { io.Copy(io.Discard, os.Stdin); os.Exit(0) }()
	for {
		c, err := l.Accept()
		if err != nil {
			panic(err)
		}
		go func() {
			p := make([]byte, 4096)
			for {
				if _, err := c.Read(p); err != nil {
					return
				}
				c.Write(answer)
			}
		}()
	}
}

func cpu() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkTransport asks a server in another process for 1 KiB, by this client and by net/http's, each as its user would
// set it up, by turns over one connection and over 32. cpu-ns/op is the client's alone. To compare in both orders:
//
//	go test ./gossip/http1 -run '^$' -bench Transport -count 6 -benchtime 20000x
func BenchmarkTransport(b *testing.B) {
	server := exec.Command(os.Args[0])
	server.Env = append(os.Environ(), "HTTP1_SERVER=1")
	stdin, _ := server.StdinPipe()
	out, _ := server.StdoutPipe()
	if err := server.Start(); err != nil {
		b.Fatal(err)
	}
	defer server.Wait()
	defer stdin.Close()
	var addr string
	if _, err := fmt.Fscanln(out, &addr); err != nil {
		b.Fatal(err)
	}
	ours := &Transport{HeaderTimeout: time.Minute}
	theirs := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64, ResponseHeaderTimeout: time.Minute}
	for _, conns := range []int{1, 32} {
		for _, of := range []struct {
			name string
			http.RoundTripper
		}{{"http1", ours}, {"net-http", theirs}} {
			b.Run(fmt.Sprintf("conns=%d/%s", conns, of.name), func(b *testing.B) {
				b.ReportAllocs()
				before := cpu()
				var left atomic.Int64
				left.Store(int64(b.N))
				done := make(chan error)
				for range conns {
					go func() {
						p := make([]byte, 32<<10)
						for left.Add(-1) >= 0 {
							r, _ := http.NewRequest("GET", "http://"+addr+"/x", nil)
							r.Header["User-Agent"] = []string{""}
							resp, err := of.RoundTrip(r)
							if err != nil {
								done <- err
								return
							}
							n := 0
							for err == nil {
								var k int
								k, err = resp.Body.Read(p)
								n += k
							}
							resp.Body.Close()
							if n != 1024 || err != io.EOF {
								done <- err
								return
							}
						}
						done <- nil
					}()
				}
				for range conns {
					if err := <-done; err != nil {
						b.Error(err)
					}
				}
				b.ReportMetric(float64(cpu()-before)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}
