package conn

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"
)

const testPatience = time.Second

// answers are ways to send a large body.
func answers(body []byte) map[string]func(c *Conn, w http.ResponseWriter) (int64, error) {
	file := inBlocks(body, 64<<10)
	head := func(c *Conn) []byte { return append(c.Buffer(), "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"...) }
	return map[string]func(c *Conn, w http.ResponseWriter) (int64, error){
		"from memory": func(c *Conn, _ http.ResponseWriter) (int64, error) { return c.Answer(head(c), inMemory(body)) },
		"in blocks":   func(c *Conn, _ http.ResponseWriter) (int64, error) { return c.Answer(head(c), file()) },
		"as a stream": func(c *Conn, _ http.ResponseWriter) (int64, error) {
			return c.Answer(head(c), io.LimitReader(bytes.NewReader(body), int64(len(body))))
		},
		"by the server": func(_ *Conn, w http.ResponseWriter) (int64, error) {
			n, err := io.Copy(struct{ io.Writer }{w}, bytes.NewReader(body)) // piece by piece
			return n, err
		},
	}
}

// A client that stops reading a large answer is given up when it has taken nothing
// for the time, however the answer is sent; one that goes on slowly gets all of it,
// though that takes many times as long.
func TestPatience(t *testing.T) {
	body := pattern(50 << 20)
	for name, send := range answers(body) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			type end struct {
				err  error
				took time.Duration
			}
			ends := make(chan end, 1)
			inner, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			s := &http.Server{ConnContext: Context, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				begun := time.Now()
				_, err := send(Of(r.Context()), w)
				ends <- end{err, time.Since(begun)}
				if err != nil {
					panic(http.ErrAbortHandler)
				}
			})}
			go s.Serve(Listen(inner, testPatience, nil))
			defer s.Close()
			ask := func() net.Conn {
				c, err := net.Dial("tcp", inner.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				c.(*net.TCPConn).SetReadBuffer(64 << 10)
				io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
				return c
			}
			stuck := ask()
			defer stuck.Close()
			if e := <-ends; !errors.Is(e.err, os.ErrDeadlineExceeded) || e.took < testPatience {
				t.Errorf("to a client that reads nothing: %v after %v", e.err, e.took)
			}
			for tries := 1; ; tries++ {
				slow := ask()
				got, begun, longest := 0, time.Now(), time.Duration(0)
				for buf := make([]byte, 4<<20); ; { // pauses, each shorter than the patience
					n, err := io.ReadFull(slow, buf)
					if got += n; err != nil {
						break
					}
					paused := time.Now()
					<-time.After(testPatience / 3)
					longest = max(longest, time.Since(paused))
				}
				slow.Close()
				e := <-ends
				if e.err != nil && longest > testPatience/2 && tries < 10 {
					continue // a busy machine made it stop for longer
				}
				if e.err != nil || got < len(body) || time.Since(begun) < 3*testPatience {
					t.Errorf("to a slow client: %v after %v, %d bytes, the longest pause %v", e.err, e.took, got, longest)
				}
				break
			}
		})
	}
}

// A connection that is taken over from the server waits for as long as its new owner.
func TestPatienceEnds(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	body, sent := pattern(20<<20), make(chan error, 1)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			sent <- err
			return
		}
		defer c.Close()
		_, err = c.Write(body)
		sent <- err
	}))
	s.Listener.Close()
	s.Listener = Listen(inner, testPatience, nil)
	s.Start()
	defer s.Close()
	c, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	select {
	case err := <-sent:
		t.Fatalf("Write() = %v before anything was read", err)
	case <-time.After(3 * testPatience):
	}
	if n, err := io.Copy(io.Discard, c); err != nil || n != int64(len(body)) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

// Answers on a connection that is used again and again set a deadline seldom.
func BenchmarkPatience(b *testing.B) {
	for name, limit := range map[string]time.Duration{"none": 0, "60s": time.Minute} {
		b.Run("patience="+name, func(b *testing.B) {
			inner, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			l := Listen(inner, limit, nil)
			go func() {
				c, err := net.Dial("tcp", inner.Addr().String())
				if err == nil {
					io.Copy(io.Discard, c)
				}
			}()
			c, err := l.Accept()
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			p := make([]byte, 1024)
			for b.Loop() {
				if _, err := c.Write(p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
