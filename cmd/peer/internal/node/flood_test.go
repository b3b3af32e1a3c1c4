// A second address of loopback is Linux's.

//go:build linux

package node

import (
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/budget"
)

// Whatever clients send, a peer stays within its budget: 60 KiB of short fields once took 714 KiB, which
// 500 connections had each. A request that waits for an origin also has a connection to it and five
// goroutines.
func TestFloodsOfClients(t *testing.T) {
	if testing.Short() {
		t.Skip("measures memory, of which the race detector takes more")
	}
	const conns = 500
	for _, flood := range []struct {
		name, say string
	}{
		{"nothing", ""},
		{"a short header", "GET / HTTP/1.1\r\nHost: x\r\n"},
		{"a long line", "GET /" + strings.Repeat("x", 60<<10)},
		{"a long field", "GET / HTTP/1.1\r\nHost: x\r\nX-A: " + strings.Repeat("x", 60<<10)},
		{"many fields", "GET / HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("X-A: x\r\n", 60<<10/8)},
		{"many names", "GET / HTTP/1.1\r\nHost: x\r\n" + manyNames(60<<10)},
		{"requests whose origin hangs", "GET /%d HTTP/1.1\r\nHost: x\r\n\r\n"},
		{"the same with bodies", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" + strings.Repeat("x", 100<<10)},
	} {
		t.Run(flood.name, func(t *testing.T) {
			hanging, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer hanging.Close()
			cfg := local(t, t.TempDir())
			cfg.MaxConnections = conns // of which one address may have half
			cfg.Origin = &url.URL{Scheme: "http", Host: hanging.Addr().String()}
			n, err := Start(t.Context(), Options{Config: cfg, Budget: budget.New(96 << 20)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { n.Close() })
			runtime.GC()
			before := memoryInUse()
			for i := range conns {
				from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+i%2))}}
				c, err := from.Dial("tcp", n.traffic.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				go io.WriteString(c, strings.Replace(flood.say, "%d", strconv.Itoa(i), 1))
			}
			most := memoryAbove(before)
			t.Logf("%.1f KiB a connection", float64(most)/conns/(1<<10))
			if most > uint64(n.budget.Limit()) { // the garbage is in it
				t.Errorf("%d MiB where %d are allowed; the accounts hold %d", most>>20, n.budget.Limit()>>20, n.budget.Held()>>20)
			}
		})
	}
}

// A stranger's connections to the admin listener cost no more than 32 MB in all, however many
// there are: with large headers, with commands without the token, or with answers that are not read.
func TestFloodsOfAdmin(t *testing.T) {
	if testing.Short() {
		t.Skip("measures memory, of which the race detector takes more")
	}
	for name, say := range map[string]string{
		"nothing":      "",
		"many names":   "GET / HTTP/1.1\r\nHost: x\r\n" + manyNames(60<<10),
		"commands":     "POST /purge HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" + strings.Repeat("x", 300<<10),
		"the page":     strings.Repeat("GET / HTTP/1.1\r\nHost: x\r\n\r\n", 100),
		"metrics":      strings.Repeat("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 100),
		"the status":   strings.Repeat("GET /status.json HTTP/1.1\r\nHost: x\r\n\r\n", 100),
		"what is held": strings.Repeat("GET /why?url=http://x/ HTTP/1.1\r\nHost: x\r\n\r\n", 100),
	} {
		t.Run(name, func(t *testing.T) {
			cfg := local(t, t.TempDir())
			cfg.Origin = &url.URL{Scheme: "http", Host: "127.0.0.1:1"}
			cfg.AdminToken = "a token"
			n := start(t, cfg, nil)
			all := []byte(say) // one for all, so that only the peer's memory grows
			runtime.GC()
			before := memoryInUse()
			for i := range 200 {
				from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+i%4))}}
				c, err := from.Dial("tcp", n.admin.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				go c.Write(all)
			}
			most := memoryAbove(before)
			open, _, refused := n.gates.admin.Stats()
			t.Logf("%.1f MB; %d connections are open, %d were refused", float64(most)/1e6, open, refused)
			if most > 32e6 {
				t.Errorf("%d MB", most/1e6)
			}
		})
	}
}

// The server's first settings limit the concurrent requests of an HTTP/2 connection.
func TestStreamsOfAConnection(t *testing.T) {
	cfg := local(t, t.TempDir())
	cfg.Origin = &url.URL{Scheme: "http", Host: "127.0.0.1:1"}
	n := start(t, cfg, nil)
	c, err := net.Dial("tcp", n.traffic.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00") // and no settings
	head := make([]byte, 9)
	if _, err := io.ReadFull(c, head); err != nil || head[3] != 4 {
		t.Fatalf("the first frame is %x, %v; want settings", head, err)
	}
	settings := make([]byte, int(head[1])<<8|int(head[2]))
	if _, err := io.ReadFull(c, settings); err != nil {
		t.Fatal(err)
	}
	for ; len(settings) >= 6; settings = settings[6:] {
		if settings[1] == 3 { // RFC 9113 section 6.5.2
			if most := binary.BigEndian.Uint32(settings[2:]); most != 100 {
				t.Errorf("%d requests at a time, want 100", most)
			}
			return
		}
	}
	t.Error("any number of requests at a time")
}

// A client whose frames are against HTTP/2 is told of: no answer of its, and no line of the access log, says why it ended.
func TestBrokenFramesAreLogged(t *testing.T) {
	cfg := local(t, t.TempDir())
	cfg.Origin = &url.URL{Scheme: "http", Host: "127.0.0.1:1"}
	var told lockedLog
	n := start(t, cfg, slog.New(slog.NewTextHandler(&told, nil)))
	for _, frames := range []string{
		"\x00\x00\x04\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00", // a window that grows by nothing
		"\x00\x00\x03\x06\x00\x00\x00\x00\x00abc",              // a ping of three bytes
		"\x00\x00\x01\x00\x00\x00\x00\x00\x07x",                // bytes of a stream that never began
	} {
		c, err := net.Dial("tcp", n.traffic.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(time.Minute))
		io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"+frames)
		io.Copy(io.Discard, c)
		c.Close()
	}
	for _, want := range []string{"how=frame_windowupdate_zero_inc_conn", "how=frame_ping_length", "how=conn_PROTOCOL_ERROR_data_on_idle"} {
		if !strings.Contains(told.String(), want) {
			t.Errorf("the log lacks %q: %s", want, told.String())
		}
	}
}

// Connections and HTTP/2 requests share one limit, of which one address may have half. Of 20, a
// connection takes one and nine of its requests the rest; further requests are admitted when these
// end.
func TestRequestsAreCounted(t *testing.T) {
	begun, end := make(chan struct{}, 100), make(chan struct{})
	origin := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		begun <- struct{}{}
		<-end
	}))
	defer origin.Close()
	over := sync.OnceFunc(func() { close(end) })
	defer over()
	cfg := local(t, t.TempDir())
	cfg.MaxConnections = 20
	cfg.Origin, _ = url.Parse(origin.URL)
	n := start(t, cfg, nil)
	client := &http.Client{Transport: &http.Transport{Protocols: new(http.Protocols)}}
	client.Transport.(*http.Transport).Protocols.SetUnencryptedHTTP2(true)
	defer client.CloseIdleConnections()
	codes := make(chan int, 100)
	get := func(i int) {
		resp, err := client.Get(fmt.Sprintf("http://%s/%d", n.traffic.Addr(), i))
		if err != nil {
			t.Error(err)
			codes <- 0
			return
		}
		defer resp.Body.Close()
		if text, _ := io.ReadAll(resp.Body); resp.StatusCode == http.StatusBadGateway {
			t.Errorf("%s: %s", resp.Header.Get("Cache-Status"), text)
		}
		codes <- resp.StatusCode
	}
	go get(0)
	<-begun // by the one connection that all others use
	for i := range 29 {
		go get(1 + i)
	}
	count := func(code, want int) {
		t.Helper()
		for range want {
			if got := <-codes; got != code {
				t.Errorf("status %d, want %d", got, code)
			}
		}
	}
	count(http.StatusServiceUnavailable, 21)
	over()
	count(http.StatusOK, 9)
	go get(100)
	count(http.StatusOK, 1)
}

func manyNames(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "X-%x: \r\n", i)
	}
	return b.String()
}

// memoryAbove returns by how many bytes the memory in use exceeds a number, at most within a second.
func memoryAbove(before uint64) (most uint64) {
	for range 40 {
		time.Sleep(25 * time.Millisecond)
		most = max(most, memoryInUse())
	}
	return most - min(before, most)
}

// memoryInUse returns the bytes of heap and stacks, garbage included.
func memoryInUse() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// A lockedLog is what a node has logged.
type lockedLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
