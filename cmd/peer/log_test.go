package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Whatever an origin sends, all lines of the log have the form of the log.
func TestLogHasOneForm(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				http.ReadRequest(bufio.NewReader(c))
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				time.Sleep(50 * time.Millisecond)
				io.WriteString(c, "more than was asked for")
				io.Copy(io.Discard, c)
			}()
		}
	}()
	p := spawn(t, "run", "--name", "a", "--store", t.TempDir(), "--origin", "http://"+l.Addr().String(), "--log-level", "debug",
		"--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--gossip", "127.0.0.1:0")
	for begun := time.Now(); !strings.Contains(p.stderr.String(), "an origin sends more than its answers"); time.Sleep(100 * time.Millisecond) {
		resp, err := http.Get("http://" + p.listen + "/")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if time.Since(begun) > 10*time.Second {
			t.Fatalf("the log does not name an origin that sends more than its answers:\n%s", p.stderr.String())
		}
	}
	for line := range strings.Lines(p.stderr.String()) {
		if !strings.HasPrefix(line, "time=") {
			t.Errorf("a line of the log: %s", line)
		}
	}
}
