package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/peertls/certtest"
)

// A terminator's connections have the client that their header names, with and without TLS, also for
// bodies that the kernel sends, and no other.
func TestProxyProtocol(t *testing.T) {
	body := strings.Repeat("x", 1<<20)
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=600")
		w.Header().Set("X-From", r.Header.Get("X-Forwarded-For"))
		io.WriteString(w, body)
	}))
	defer app.Close()
	cert, key := certtest.New(t).Peer("www.example.com", time.Now().Add(time.Hour))
	https := freeAddr(t)
	p := inProcess(t, local(t, "a", "--origin", app.URL, "--proxy-protocol", "127.0.0.1", "--https", https, "--https-cert", cert, "--https-key", key))
	for _, encrypted := range []bool{false, true} {
		for _, again := range []bool{false, true} {
			addr := p.listen
			if encrypted {
				addr = https
			}
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			io.WriteString(c, "PROXY TCP4 192.0.2.1 192.0.2.2 1000 80\r\n")
			if encrypted {
				c = tls.Client(c, &tls.Config{InsecureSkipVerify: true})
			}
			fmt.Fprintf(c, "GET /x HTTP/1.1\r\nHost: www.example.com\r\nX-Forwarded-For: 203.0.113.9\r\n\r\n")
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(resp.Body)
			if err != nil || string(got) != body || resp.Header.Get("X-From") != "192.0.2.1" || strings.Contains(resp.Header.Get("Cache-Status"), "hit") != again {
				t.Errorf("encrypted %v, again %v: %d bytes, %v, %v", encrypted, again, len(got), err, resp.Header)
			}
			p.stored(t, map[bool]int{false: 1, true: 2}[encrypted]) // http and https are two sites
		}
	}
	if r, err := http.Get("http://" + p.listen + "/x"); err == nil {
		r.Body.Close()
		t.Errorf("without a header: %s", r.Status)
	}
}
