package opening

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const v2 = "\r\n\r\n\x00\r\nQUIT\n"

// A header names the client, or nobody; what is none is an error. Nothing behind a header is read.
func TestProxyHeader(t *testing.T) {
	for header, want := range map[string]string{
		"PROXY TCP4 192.0.2.1 192.0.2.2 1000 80\r\n":                                        "192.0.2.1:1000",
		"PROXY TCP6 2001:db8::1 2001:db8::2 1000 80\r\n":                                    "[2001:db8::1]:1000",
		"PROXY UNKNOWN\r\n":                                                                 "none",
		"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n":                                             "none",
		v2 + "\x21\x11\x00\x0c\xc0\x00\x02\x01\xc0\x00\x02\x02\x03\xe8\x00\x50":             "192.0.2.1:1000",
		v2 + "\x21\x11\x00\x0f\xc0\x00\x02\x01\xc0\x00\x02\x02\x03\xe8\x00\x50\x04\x00\x00": "192.0.2.1:1000", // and a TLV
		v2 + "\x21\x21\x00\x24" + strings.Repeat("\x20", 32) + "\x03\xe8\x00\x50":           "[2020:2020:2020:2020:2020:2020:2020:2020]:1000",
		v2 + "\x20\x00\x00\x00":                                                             "none", // a health check of the proxy
		v2 + "\x21\x31\x00\x02ab":                                                           "none", // a Unix socket
		v2 + "\x21\x11\x00\x0b" + strings.Repeat("x", 11):                                   "error",
		v2 + "\x11\x11\x00\x0c" + strings.Repeat("x", 12):                                   "error",
		v2 + "\x21\x11\xff\xff":                                                             "error",
		"PROXY TCP4 2001:db8::1 2001:db8::2 1000 80\r\n":                                    "error",
		"PROXY TCP4 192.0.2.1 192.0.2.2 1000\r\n":                                           "error",
		"PROXY TCP4 192.0.2.1 192.0.2.2 -1 80\r\n":                                          "error",
		"PROXY TCP4 " + strings.Repeat("1", 200) + "\r\n":                                   "error",
		"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n":                                            "error",
		"":                                                                                  "error",
	} {
		behind := "GET / HTTP/1.1\r\n"
		r := strings.NewReader(header + behind)
		client, err := readProxyHeader(r)
		got := client.String()
		switch {
		case err != nil:
			got = "error"
		case !client.IsValid():
			got = "none"
		}
		if got != want {
			t.Errorf("%q = %s (%v), want %s", header, got, err, want)
		}
		if rest, _ := io.ReadAll(r); err == nil && string(rest) != behind {
			t.Errorf("%q: %q is left", header, rest)
		}
	}
}

// Any bytes are a header, or an error, and what is behind them is not read.
func FuzzProxyHeader(f *testing.F) {
	for _, seed := range []string{"PROXY TCP4 192.0.2.1 192.0.2.2 1000 80\r\nx", "PROXY UNKNOWN\r\n", v2 + "\x21\x11\x00\x0c\xc0\x00\x02\x01\xc0\x00\x02\x02\x03\xe8\x00\x50x", v2 + "\x21\x21\xff\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		client, err := readProxyHeader(r)
		read := b[:len(b)-r.Len()]
		switch {
		case err != nil && client.IsValid():
			t.Errorf("%q: %v and %v", b, client, err)
		case len(read) > 16+1024:
			t.Errorf("%d bytes of %q were read", len(read), b)
		case err == nil && !bytes.HasPrefix(read, []byte(v2)) && !bytes.HasSuffix(read, []byte("\r\n")):
			t.Errorf("%q is no header", read)
		}
	})
}

// Connections of the proxies in front have their clients' addresses, those of others their own; one that
// sends nothing keeps no other waiting, and one without a header is closed.
func TestTerminated(t *testing.T) {
	below, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var networks atomic.Pointer[[]netip.Prefix]
	networks.Store(&[]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	lines := make(chan string, 9)
	l := Proxied(below, func() []netip.Prefix { return *networks.Load() }, slog.New(slog.NewTextHandler(lineWriter(lines), nil)))
	dial := func(text string) net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		io.WriteString(c, text)
		return c
	}
	accept := func(want string) {
		t.Helper()
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if got := c.RemoteAddr().String(); got != want {
			t.Errorf("a connection from %s, want %s", got, want)
		}
		if b := make([]byte, 2); want == "192.0.2.1:1000" {
			if n, err := io.ReadFull(c, b); string(b[:n]) != "hi" {
				t.Errorf("read %q, %v", b[:n], err)
			}
		}
	}
	dial("PROXY ") // it never says more
	dial("PROXY TCP4 192.0.2.1 192.0.2.2 1000 80\r\nhi")
	accept("192.0.2.1:1000")
	local := dial("PROXY UNKNOWN\r\n")
	accept(local.LocalAddr().String())
	bad := dial("GET / HTTP/1.1\r\n\r\n")
	dial(v2 + "\x21\x11\x00\x0c\xc0\x00\x02\x01\xc0\x00\x02\x02\x03\xe8\x00\x50hi")
	accept("192.0.2.1:1000")
	bad.SetReadDeadline(time.Now().Add(time.Minute))
	if n, err := bad.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Errorf("without a header: %d bytes, %v", n, err)
	}
	networks.Store(&[]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	other := dial("PROXY TCP4 192.0.2.1 192.0.2.2 1000 80\r\n")
	accept(other.LocalAddr().String())
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := l.Accept(); err == nil {
		t.Error("a closed listener accepts")
	}
	if line := <-lines; !strings.Contains(line, "no valid PROXY header") {
		t.Errorf("the log: %s", line)
	}
}

type lineWriter chan<- string

func (w lineWriter) Write(p []byte) (int, error) { w <- string(p); return len(p), nil }
