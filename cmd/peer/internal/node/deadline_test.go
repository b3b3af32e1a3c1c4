package node

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/config"
)

// shortly is the limit of the peers in these tests, which take several times as long.
const shortly = 300 * time.Millisecond

// impatient starts a peer with short deadlines before an origin.
func impatient(t *testing.T, h http.HandlerFunc, tune func(*config.Config)) *Node {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	cfg := local(t, t.TempDir())
	cfg.Origin, _ = url.Parse(server.URL)
	cfg.ClientBodyTimeout, cfg.SendTimeout = shortly, shortly
	if tune != nil {
		tune(&cfg)
	}
	return start(t, cfg, nil)
}

// say opens a connection to a peer's listener, and sends it something.
func say(t *testing.T, n *Node, text string) (net.Conn, *bufio.Reader) {
	t.Helper()
	c, err := net.Dial("tcp", n.Addresses().Listen)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	io.WriteString(c, text)
	return c, bufio.NewReader(c)
}

func drained(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	fmt.Fprint(w, len(b))
}

// A request whose body stops after one byte is given up, whether it is a client's or another
// peer's, and this does not count against the origin. A body that continues slowly arrives
// completely, though it takes longer than a pause may.
func TestClientBodyTimeout(t *testing.T) {
	n := impatient(t, drained, nil)
	for path, header := range map[string]string{"/upload": "", "/.well-known/summarycache-control": "Summarycache-Control: x\r\n"} {
		begun := time.Now()
		_, r := say(t, n, "POST "+path+" HTTP/1.1\r\nHost: x\r\n"+header+"Content-Length: 5000\r\n\r\na")
		resp, err := http.ReadResponse(r, nil)
		switch {
		case err == nil && header == "" && (resp.StatusCode != http.StatusRequestTimeout || !strings.Contains(resp.Header.Get("Cache-Status"), "detail=request-timeout")):
			t.Errorf("%s: %s, %v", path, resp.Status, resp.Header)
		case err == nil:
			_, err = io.ReadAll(resp.Body)
			_, end := r.ReadByte()
			if err != nil || end != io.EOF {
				t.Errorf("%s: after the answer %v, %v", path, err, end)
			}
		case header == "":
			t.Errorf("%s: %v", path, err)
		}
		if took := time.Since(begun); took < shortly || took > 15*time.Second {
			t.Errorf("%s: given up after %v", path, took)
		}
	}
	_, r := say(t, n, "POST /upload HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n")
	if resp, err := http.ReadResponse(r, nil); err != nil || resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a malformed chunk: %v, %v", resp, err)
	}
	s := n.Status()
	if s.Traffic.OriginErrors != 0 || len(s.Origins) != 0 || s.Traffic.ClientErrors < 2 {
		t.Errorf("clients' faults are the origin's: %+v, %+v", s.Traffic, s.Origins)
	}

	const pieces, longer = 12, 2 * time.Second // which a starved process does not miss between two pieces
	cfg := *n.config()
	cfg.ClientBodyTimeout = longer
	n.configure(cfg)
	c, r := say(t, n, fmt.Sprintf("POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", pieces))
	for range pieces {
		<-time.After(longer / 10)
		io.WriteString(c, "a")
	}
	resp, err := http.ReadResponse(r, nil)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("a slow body: %v, %v", resp, err)
	}
	io.Copy(io.Discard, resp.Body)
	<-time.After(longer + shortly) // the deadline is that of the body, not of the connection
	io.WriteString(c, "GET /again HTTP/1.1\r\nHost: x\r\n\r\n")
	if resp, err := http.ReadResponse(r, nil); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("the next request on the connection: %v, %v", resp, err)
	}
}

// A request whose body is never read does not hold its connection for ever either.
func TestBodyThatNobodyReads(t *testing.T) {
	n := impatient(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Cache-Control", "max-age=60") }, nil)
	for range 2 { // the second is a hit
		begun := time.Now()
		_, r := say(t, n, "GET /x HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\na")
		io.Copy(io.Discard, r)
		if took := time.Since(begun); took > 15*time.Second {
			t.Errorf("the connection lasted %v", took)
		}
	}
}

// An origin may take longer to answer than a client's body may pause.
func TestSlowOriginAfterUpload(t *testing.T) {
	n := impatient(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-time.After(3 * shortly)
		drained(w, r)
	}, nil)
	_, r := say(t, n, "POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na")
	if resp, err := http.ReadResponse(r, nil); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("%v, %v", resp, err)
	}
}

// A client that stops reading may stay while there is room. When another needs it, it is given up,
// whether the body comes from the origin or the store.
func TestSendTimeout(t *testing.T) {
	const size = 50 << 20
	n := impatient(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Content-Length", fmt.Sprint(size))
		for range size >> 20 {
			w.Write(make([]byte, 1<<20))
		}
	}, func(c *config.Config) { c.StoreSize, c.MaxConnections, c.SendTimeout = 1<<30, 4, time.Hour }) // two of them for this address
	next := *n.config()
	next.SendTimeout = shortly
	if _, err := n.Apply(next, nil, false); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		c, r := say(t, n, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
		c.(*net.TCPConn).SetReadBuffer(32 << 10)
		<-time.After(3 * shortly)
		if broken := n.Status().Traffic.BrokenBodies; broken > uint64(i) {
			t.Fatal("given up although there is room")
		}
		begun := time.Now()
		other, _ := say(t, n, "")
		for n.Status().Traffic.BrokenBodies < uint64(i+1) {
			if time.Since(begun) > 30*time.Second {
				t.Fatal("still sent after 30 s")
			}
			<-time.After(shortly / 10)
		}
		if got, err := io.Copy(io.Discard, r); got >= size {
			t.Errorf("%d bytes, %v", got, err)
		}
		other.Close()
		c.Close()
	}
}

// Tunnels and WebSockets may be idle without limit.
func TestTunnelsMayPause(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); io.Copy(c, c) }()
		}
	}()
	upgrade := func(w http.ResponseWriter, r *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		io.Copy(c, c)
	}
	for name, c := range map[string]struct {
		request string
		tune    func(*config.Config)
		code    int
	}{
		"CONNECT": {"CONNECT " + echo.Addr().String() + " HTTP/1.1\r\nHost: x\r\n\r\n", func(c *config.Config) {
			c.Origin, c.ConnectPorts = nil, []uint16{netip.MustParseAddrPort(echo.Addr().String()).Port()}
		}, 200},
		"WebSocket": {"GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", nil, 101},
	} {
		t.Run(name, func(t *testing.T) {
			n := impatient(t, upgrade, c.tune)
			to, r := say(t, n, c.request)
			resp, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
			if err != nil || resp.StatusCode != c.code {
				t.Fatalf("%v, %v", resp, err)
			}
			for range 2 {
				<-time.After(3 * shortly)
				io.WriteString(to, "ping")
				if _, err := io.ReadFull(r, make([]byte, 4)); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
