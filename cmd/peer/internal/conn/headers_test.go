package conn

import (
	"bytes"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/budget"
)

// TestHeadersHaveABudget checks that connections which send long headers get what there is for all, one
// address half of it, and then no more; what they had comes back when they are idle, or closed.
func TestHeadersHaveABudget(t *testing.T) {
	b := budget.New(32 << 20)
	requests := b.Open("requests", 0, 64<<10)
	g := NewGate(Limits{Conns: 4, Requests: requests})
	known(g, 1, "10.0.0.2:1")
	one := bytes.Repeat([]byte{'x'}, (16<<10)/perByte)
	conns := make([]*Conn, 4)
	for i, addr := range []string{"10.0.0.1:1", "10.0.0.1:2", "10.0.0.2:1", "10.0.0.3:1"} {
		conns[i] = Patient(&from{addr: addr}, 0)
		if !g.admit(conns[i], time.Now()) {
			t.Fatal("not admitted")
		}
	}
	steps := []struct {
		conn int
		want bool
	}{{0, true}, {0, true}, {0, false}, {1, false}, {2, true}, {2, true}, {3, false}}
	for i, s := range steps {
		if got := g.keep(conns[s.conn], one); got != s.want {
			t.Errorf("step %d: keep(connection %d) = %v, want %v; %d bytes are held", i, s.conn, got, s.want, requests.Held())
		}
	}
	if !g.keep(conns[3], one[:freeHeader/perByte]) {
		t.Error("a short header is refused")
	}
	Idle(conns[0], false)
	Idle(conns[0], true)
	conns[2].Close()
	if got := requests.Held(); got != 0 {
		t.Errorf("%d bytes are held, no connection has a long header", got)
	}
	if !g.keep(conns[3], one) {
		t.Error("refused although there is room again")
	}
	if many := bytes.Repeat([]byte("a:\r\n"), 100); !g.keep(conns[1], many) || conns[1].pass.header.Load() < 100*perField {
		t.Errorf("100 fields count as %d bytes", conns[1].pass.header.Load())
	}
	for _, c := range slices.Clone(g.conns.list) {
		c.Close()
	}
	if requests.Held() != 0 || len(g.hosts) != 0 || g.used != 0 {
		t.Errorf("at the end %d bytes are held, %d addresses and %d places are in use", requests.Held(), len(g.hosts), g.used)
	}
}

// TestEmptyLinesBeforeTheRequest checks that a few are dropped, in whatever pieces they come, and that
// everything after them passes.
func TestEmptyLinesBeforeTheRequest(t *testing.T) {
	tests := []struct {
		name, sent, want string
		pieces           int
	}{
		{"none", "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", 100},
		{"one", "\r\nGET /\r\n\r\n", "GET /\r\n\r\n", 100},
		{"one in pieces", "\r\nGET /\r\n\r\n", "GET /\r\n\r\n", 1},
		{"four, without carriage returns too", "\r\n\n\n\r\nGET /\r\n", "GET /\r\n", 3},
		{"as many as are dropped", "\r\n\r\n\r\n\r\nGET /\r\n", "GET /\r\n", 5},
		{"too many", "\r\n\r\n\r\n\r\n\r\nGET /\r\n", "\r\nGET /\r\n", 100},
		{"too many in pieces", "\r\n\r\n\r\n\r\n\r\nGET /\r\n", "\r\nGET /\r\n", 1},
		{"TLS", "\x16\r\n\r\n", "\x16\r\n\r\n", 1},
		{"nothing else", "\r\n", "", 100},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			client, server := net.Pipe()
			go func() {
				for b := range slices.Chunk([]byte(test.sent), test.pieces) {
					client.Write(b)
				}
				client.Close()
			}()
			got, err := io.ReadAll(Patient(server, 0))
			if string(got) != test.want || err != nil {
				t.Errorf("after %q Read gives %q, %v, want %q", test.sent, got, err, test.want)
			}
		})
	}
}
