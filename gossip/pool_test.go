package gossip

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/internal/secrets"
)

// A stuckConn is the stream to a peer that does not read: Close waits.
type stuckConn struct {
	net.Conn
	freed chan struct{}
}

func (c stuckConn) Close() error {
	<-c.freed
	return nil
}

// TestPoolIsFreeWhileAStreamCloses: while a stream takes long to close, the others can be used.
func TestPoolIsFreeWhileAStreamCloses(t *testing.T) {
	for name, closes := range map[string]func(p *pool, w *conn){
		"prune": func(p *pool, _ *conn) { p.prune(time.Now().Add(time.Second)) },
		"empty": func(p *pool, _ *conn) { p.empty() },
		"put":   func(p *pool, w *conn) { p.put("a", w, new(secrets.Ring)) },
	} {
		synctest.Test(t, func(t *testing.T) {
			p := new(pool)
			w := &conn{Conn: stuckConn{freed: make(chan struct{})}, under: new(secrets.Ring)}
			p.put("a", w, w.under)
			go closes(p, w)
			synctest.Wait()
			if !p.mu.TryLock() {
				t.Errorf("%s: the pool is locked while a stream closes", name)
			} else {
				p.mu.Unlock()
			}
			close(w.Conn.(stuckConn).freed)
		})
	}
}
