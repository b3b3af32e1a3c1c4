package node

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/config"
	"github.com/summarycache/summarycache/cmd/peer/internal/conn"
	"github.com/summarycache/summarycache/gossip/httpcache/budget"
	"github.com/summarycache/summarycache/gossip/memnet"
)

// A connection without a request does not delay the shutdown of a server. A request
// under way does, up to the limit.
func TestUnusedConnections(t *testing.T) {
	const slow, limit = 3 * time.Second, 4 * time.Second
	for _, tt := range []struct {
		name    string
		request bool
		limit   time.Duration
		answer  string
		takes   time.Duration
		err     error
	}{
		{"no request", false, limit, "", 0, nil},
		{"a request", true, limit, "HTTP/1.1 200 OK", slow, nil},
		{"a request that takes too long", true, slow / 2, "", slow / 2, context.DeadlineExceeded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, gate, c := served(t, slow)
				answered := make(chan string)
				go func() {
					if tt.request {
						io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
					}
					answer, _ := io.ReadAll(c)
					answered <- string(answer[:min(len(answer), len(tt.answer))])
				}()
				synctest.Wait()
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), tt.limit)
				defer cancel()
				gate.CloseUnused()
				err := server.Shutdown(ctx)
				if took := time.Since(began); !errors.Is(err, tt.err) || took < tt.takes || took > tt.takes+time.Second {
					t.Errorf("Shutdown = %v after %v, want %v after %v", err, took, tt.err, tt.takes)
				}
				server.Close()
				if answer := <-answered; answer != tt.answer {
					t.Errorf("answer %q, want %q", answer, tt.answer)
				}
				time.Sleep(slow) // the handler that was cut off ends
			})
		})
	}
}

// served returns a node's server that takes a while for each request, and a connection to it.
func served(t *testing.T, slow time.Duration) (*http.Server, *conn.Gate, net.Conn) {
	network := memnet.New(1)
	l, err := network.Host("10.0.0.1").Listen("10.0.0.1:80")
	if err != nil {
		t.Fatal(err)
	}
	gate := conn.NewGate(conn.Limits{})
	l = conn.Listen(l, 0, gate)
	n := &Node{log: slog.New(slog.DiscardHandler), budget: budget.New(math.MaxInt64)}
	n.configure(config.Config{})
	n.serveOn(l, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(slow) }), func(s *http.Server) error { return s.Serve(l) })
	c, err := network.Host("10.0.0.2").Dial(t.Context(), "10.0.0.1:80")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return n.servers[0], gate, c
}
