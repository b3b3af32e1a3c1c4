package conn

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

	"github.com/summarycache/summarycache/gossip/httpcache/budget"
)

// A request that the server refuses by itself is told of, once, whatever has come before it on its connection; one that a
// handler or the gate refuses is not.
func TestUnread(t *testing.T) {
	for _, encrypted := range []bool{false, true} {
		t.Run(fmt.Sprint("TLS=", encrypted), func(t *testing.T) { testUnread(t, encrypted) })
	}
}

// Below TLS each status counts as 400.
func testUnread(t *testing.T, encrypted bool) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := budget.New(32 << 20)
	gate := NewGate(Limits{Requests: b.Open("requests", 0, 4<<20)})
	told := make(chan int, 100)
	gate.OnUnread(func(from string, status int) {
		if !strings.HasPrefix(from, "127.0.0.1:") {
			t.Errorf("from %q", from)
		}
		told <- status
	})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", http.StatusTeapot) })
	server := &http.Server{Handler: gate.Requests(handler), ConnState: func(c net.Conn, s http.ConnState) { Idle(c, s == http.StateNew || s == http.StateIdle) }}
	server.ConnContext = Context
	defer server.Close()
	dial := func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) }
	if own := Listen(l, time.Minute, gate); !encrypted {
		go server.Serve(own)
	} else {
		lender := httptest.NewTLSServer(nil)
		defer lender.Close()
		server.TLSConfig = &tls.Config{Certificates: lender.TLS.Certificates}
		go server.ServeTLS(own, "", "")
		dial = func() (net.Conn, error) {
			return tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		}
	}
	const good = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	for _, c := range []struct {
		sent string
		want []int // statuses that come; the last of them is told of if it is not 418
	}{
		{good + good, []int{418, 418}},
		{"GET / HTTP/1.1\r\n\r\n", []int{400}},
		{"GE(T / HTTP/1.1\r\nHost: x\r\n\r\n", []int{400}},
		{good + "GET /% HTTP/1.1\r\nHost: x\r\n\r\n", []int{418, 400}},
		{good + good + "GET / HTTP/3.0\r\nHost: x\r\n\r\n", []int{418, 418, 505}},
		{"GET / HTTP/1.1\r\nHost: x\r\nExpect: y\r\n\r\n", []int{417}},
		{"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", []int{501}},
	} {
		client, err := dial()
		if err != nil {
			t.Fatal(err)
		}
		client.SetDeadline(time.Now().Add(20 * time.Second))
		io.WriteString(client, c.sent)
		r := bufio.NewReader(client)
		for _, want := range c.want {
			resp, err := http.ReadResponse(r, nil)
			if err != nil || resp.StatusCode != want {
				t.Fatalf("%q: %v, %v, want %d", c.sent, resp, err, want)
			}
			if want == http.StatusTeapot {
				io.Copy(io.Discard, resp.Body)
				continue
			}
			select {
			case got := <-told:
				if encrypted {
					want = http.StatusBadRequest
				}
				if got != want {
					t.Errorf("%q: told of %d, want %d", c.sent, got, want)
				}
			case <-time.After(20 * time.Second):
				t.Errorf("%q: not told of", c.sent)
			}
		}
		client.Close()
	}
	if len(told) > 0 {
		t.Errorf("told of %d more", len(told))
	}
}
