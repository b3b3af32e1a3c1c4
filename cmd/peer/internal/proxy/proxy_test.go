package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func traceHints(ctx context.Context, n *int) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			if code == http.StatusEarlyHints && h.Get("Link") != "" {
				*n++
			}
			return nil
		},
	})
}

// A marked object is one of the store on disk.
type marked interface{ Copied() bool }

func TestSiblingHit(t *testing.T) {
	for _, reverse := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, reverse, cached("hello"), "a", "b")
			defer w.close()
			w.get("b", "/x")
			time.Sleep(10 * time.Second)
			synctest.Wait()
			r := w.get("a", "/x")
			if want := "b; hit; ttl=50, a; fwd=uri-miss; fwd-status=200; stored; detail=sibling"; r.body != "hello" || r.status() != want {
				t.Errorf("%q %q, want %q", r.body, r.status(), want)
			}
			if got := r.Header.Get("Age"); got != "10" {
				t.Errorf("Age: %s, want 10", got)
			}
			synctest.Wait()
			for peer, copied := range map[string]bool{"a": true, "b": false} {
				if o, ok := w.peers[peer].Store().Peek("GET http://" + originHost + "/x"); !ok || o.(marked).Copied() != copied {
					t.Errorf("%s has it: %v; as a copy: %v, want %v", peer, ok, ok && o.(marked).Copied(), copied)
				}
			}
			if r := w.get("a", "/x"); r.status() != "a; hit; ttl=50" {
				t.Errorf("then %q", r.status())
			}
			synctest.Wait()
			n, m := w.peers["a"].Counters(), w.peers["b"].Counters()
			if n.SiblingHits != 1 || n.SiblingRequests != 1 || n.FalseHits != 0 || n.LocalHits != 1 || m.ServedToSiblings != 1 ||
				n.BytesFromSiblings != 5 || m.BytesToSiblings != 5 || m.BytesFromOrigins != 5 || n.BytesToClients != 10 {
				t.Errorf("a: %+v\nb: %+v", n, m)
			}
			if w.recorded() != "b:hit" || w.origin.count() != 1 {
				t.Errorf("recorded %q, %d origin requests", w.recorded(), w.origin.count())
			}
		})
	}
}

// TestTargets checks which requests are for this proxy, and how others are refused.
func TestTargets(t *testing.T) {
	tests := []struct {
		reverse bool
		line    string
		status  int
		origin  string // what the origin is asked for
	}{
		{false, "GET http://origin.test/x?y HTTP/1.1", 200, "/x?y"},
		{false, "GET http://origin.test/x?y#z HTTP/1.1", 400, ""},
		{false, "GET http://user:secret@origin.test/x HTTP/1.1", 200, "/x"},
		{false, "GET http://ORIGIN.test:80 HTTP/1.1", 200, "/"},
		{false, "GET /x HTTP/1.1", 400, ""},
		{false, "GET ftp://origin.test/x HTTP/1.1", 400, ""},
		{false, "GET http:///x HTTP/1.1", 400, ""},
		{false, "CONNECT origin.test HTTP/1.1", 400, ""},
		{false, "CONNECT nowhere.test:443 HTTP/1.1", 502, ""},
		{true, "GET /x%2Fy HTTP/1.1", 200, "/base/x%2Fy"},
		{true, "GET / HTTP/1.1", 200, "/base/"},
		{true, "GET http://origin.test/base/x HTTP/1.1", 200, "/base/x"},
		{true, "GET http://origin.test/x HTTP/1.1", 421, ""},
		{true, "GET http://elsewhere.test/base/x HTTP/1.1", 421, ""},
		{true, "GET https://origin.test/base/x HTTP/1.1", 421, ""},
		{true, "CONNECT origin.test:80 HTTP/1.1", 405, ""},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, tt.reverse, cached("x"))
			w.tune = func(c *Config) {
				if c.Origin != nil {
					c.Origin.Path = "/base"
				}
			}
			w.start("a", t.TempDir())
			defer w.close()
			conn := w.dial("a")
			defer conn.Close()
			go io.WriteString(conn, tt.line+"\r\nHost: client.test\r\n\r\n")
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatalf("%s: %v", tt.line, err)
			}
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != tt.status || !strings.HasPrefix(resp.Header.Get("Cache-Status"), "a;") {
				t.Errorf("%s: %d %q %q, want %d", tt.line, resp.StatusCode, body, resp.Header.Get("Cache-Status"), tt.status)
			}
			switch {
			case tt.origin == "" && w.origin.count() > 0:
				t.Errorf("%s: the origin got a request", tt.line)
			case tt.origin != "":
				if r := w.origin.last(); r.RequestURI != tt.origin || r.Host != originHost && !strings.EqualFold(r.Host, originHost+":80") || r.Header["Authorization"] != nil {
					t.Errorf("%s: the origin got a request for %s at %s", tt.line, r.RequestURI, r.Host)
				}
			}
		})
	}
}

func TestConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, false, cached("x"))
		w.tune = func(c *Config) { c.AllowConnect = func(host, port string) bool { return port == "443" } }
		w.start("a", t.TempDir())
		defer w.close()
		l := w.net.listen("target.test:443")
		go func() {
			conn, _ := l.Accept()
			io.Copy(conn, conn) // echo
			conn.Close()
		}()
		conn, err := w.net.dial(t.Context(), "tcp", "peer-a:3128")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, "CONNECT target.test:443 HTTP/1.1\r\nHost: target.test:443\r\n\r\n")
		br := bufio.NewReader(conn)
		resp, err := http.ReadResponse(br, &http.Request{Method: http.MethodConnect})
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("%v %v", resp, err)
		}
		for range 3 {
			go io.WriteString(conn, "ping")
			b := make([]byte, 4)
			if _, err := io.ReadFull(br, b); err != nil || string(b) != "ping" {
				t.Errorf("%q %v", b, err)
			}
		}
		conn.Close()
		synctest.Wait()
		if n := w.peers["a"].Counters(); n.Tunnels != 1 || n.BytesToClients != 12 {
			t.Errorf("%+v", n)
		}
		if r := w.do("a", "CONNECT", "target.test:22", ""); r.StatusCode != http.StatusForbidden {
			t.Errorf("port 22: %d", r.StatusCode)
		}
	})
}

// halfOpen is a connection whose writing half can be closed, which the other end does not notice.
type halfOpen struct{ net.Conn }

func (halfOpen) CloseWrite() error { return nil }

// A tunnel ends if its client is gone and its target neither closes it nor sends anything.
func TestConnectHalfOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, false, cached("x"))
		w.tune = func(c *Config) {
			c.AllowConnect = func(host, port string) bool { return true }
			c.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := w.net.dial(ctx, network, addr)
				return halfOpen{conn}, err
			}
		}
		w.start("a", t.TempDir())
		defer w.close()
		l := w.net.listen("target.test:443")
		ended := make(chan struct{})
		go func() {
			conn, _ := l.Accept()
			io.Copy(io.Discard, conn)
			close(ended)
		}()
		conn := w.dial("a")
		fmt.Fprint(conn, "CONNECT target.test:443 HTTP/1.1\r\nHost: target.test:443\r\n\r\n")
		if resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodConnect}); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp, err)
		}
		go io.Copy(io.Discard, conn)
		time.Sleep(time.Hour) // both ends are open
		conn.Close()
		time.Sleep(time.Minute + time.Second)
		select {
		case <-ended:
		default:
			t.Error("the target is still connected a minute after the client was gone")
			w.peers["a"].Close()
		}
	})
}

// A tunnel ends if one end sends and the other reads nothing.
func TestConnectToOneThatReadsNothing(t *testing.T) {
	for _, sends := range []string{"client", "target"} {
		t.Run(sends, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, false, cached("x"))
				w.tune = func(c *Config) { c.AllowConnect = func(host, port string) bool { return true } }
				w.start("a", t.TempDir())
				defer w.close()
				l := w.net.listen("target.test:443")
				go func() {
					conn, _ := l.Accept()
					if sends == "target" {
						writeEndlessly(conn)
					}
				}()
				conn := w.dial("a")
				fmt.Fprint(conn, "CONNECT target.test:443 HTTP/1.1\r\nHost: target.test:443\r\n\r\n")
				if resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodConnect}); err != nil || resp.StatusCode != http.StatusOK {
					t.Fatal(resp, err)
				}
				if sends == "client" {
					go writeEndlessly(conn)
				}
				time.Sleep(3 * time.Minute) // one for the write, and one for the other way
				checkTunnelsEnded(t, w.peers["a"])
			})
		})
	}
}

func writeEndlessly(w io.Writer) {
	for {
		if _, err := w.Write(make([]byte, 64<<10)); err != nil {
			return
		}
	}
}

func checkTunnelsEnded(t *testing.T, h *Handler) {
	t.Helper()
	if c := h.Counters(); c.Tunnels != 1 || c.Requests != 1 { // requests are counted when they end
		t.Errorf("%d tunnels, %d of them ended, want one that ended", c.Tunnels, c.Requests)
	}
}

// A WebSocket ends in the same case.
func TestWebSocketToOneThatReadsNothing(t *testing.T) {
	for _, sends := range []string{"client", "origin"} {
		t.Run(sends, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				over := make(chan struct{})
				w := newWorld(t, true, func(w http.ResponseWriter, r *http.Request, n int) {
					conn, _, _ := http.NewResponseController(w).Hijack()
					io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
					if sends == "origin" {
						writeEndlessly(conn)
					}
					<-over
					conn.Close()
				}, "a")
				defer w.close()
				defer close(over)
				conn := w.dial("a")
				go fmt.Fprint(conn, "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n")
				if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
					t.Fatal(resp, err)
				}
				if sends == "client" {
					go writeEndlessly(conn)
				}
				time.Sleep(3 * time.Minute)
				checkTunnelsEnded(t, w.peers["a"])
			})
		})
	}
}

// Once one way of a tunnel has ended, the other way goes on for however long, until it pauses.
func TestConnectGoesOnHalfOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, sender := net.Pipe()
		to, receiver := net.Pipe()
		go io.Copy(io.Discard, receiver)
		go func() {
			for range 5 {
				time.Sleep(40 * time.Second)
				io.WriteString(sender, "x")
			}
		}()
		start := time.Now()
		from.SetReadDeadline(start.Add(time.Minute)) // as the end of the other way does
		if n := carry(halfOpen{to}, from, time.Minute); n != 5 || time.Since(start) > 6*time.Minute {
			t.Errorf("%d bytes in %v, want 5", n, time.Since(start))
		}
		to.Close()
	})
}

// TestWebSocket checks that an upgrade is passed to the origin of a reverse proxy, and that its
// refusal is passed back.
func TestWebSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, true, func(w http.ResponseWriter, r *http.Request, n int) {
			if n > 0 || r.Header.Get("Upgrade") != "websocket" || r.Header.Get("Via") != "1.1 a" {
				w.Header()["Content-Type"] = nil
				w.WriteHeader(http.StatusTeapot)
				io.WriteString(w, "<html>")
				return
			}
			conn, buf, _ := http.NewResponseController(w).Hijack()
			io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade, X-Hop\r\nUpgrade: websocket\r\nX-Hop: 1\r\n\r\n")
			io.Copy(conn, buf) // echo
			conn.Close()
		}, "a")
		defer w.close()
		ask := func() (net.Conn, *bufio.Reader, *http.Response) {
			conn, err := w.net.dial(t.Context(), "tcp", "peer-a:3128")
			if err != nil {
				t.Fatal(err)
			}
			go fmt.Fprint(conn, "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n")
			br := bufio.NewReader(conn)
			resp, err := http.ReadResponse(br, nil)
			if err != nil {
				t.Fatal(err)
			}
			return conn, br, resp
		}
		conn, br, resp := ask()
		if resp.StatusCode != 101 || resp.Header.Get("Upgrade") != "websocket" || resp.Header.Get("Cache-Status") != "a; fwd=bypass; fwd-status=101" ||
			resp.Header.Get("Connection") != "Upgrade" || resp.Header["X-Hop"] != nil {
			t.Errorf("%d %v", resp.StatusCode, resp.Header)
		}
		for range 3 {
			go io.WriteString(conn, "ping")
			b := make([]byte, 4)
			if _, err := io.ReadFull(br, b); err != nil || string(b) != "ping" {
				t.Errorf("%q %v", b, err)
			}
		}
		conn.Close()
		synctest.Wait()
		if n := w.peers["a"].Counters(); n.Tunnels != 1 || n.BytesToClients != 12 {
			t.Errorf("%+v", n)
		}
		conn, _, resp = ask()
		conn.Close()
		if resp.StatusCode != http.StatusTeapot || resp.Header["Content-Type"] != nil {
			t.Errorf("a refusal came back as %d %v", resp.StatusCode, resp.Header)
		}
	})
}
