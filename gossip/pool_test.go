package gossip

import (
	"net"
	"testing"
	"testing/synctest"
	"time"
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
	for name, closes := range map[string]func(p *pool, w *wire){
		"prune": func(p *pool, _ *wire) { p.prune(time.Now().Add(time.Second)) },
		"empty": func(p *pool, _ *wire) { p.empty() },
		"put":   func(p *pool, w *wire) { p.put("a", w, new(ring)) },
	} {
		synctest.Test(t, func(t *testing.T) {
			p := new(pool)
			w := &wire{Conn: stuckConn{freed: make(chan struct{})}, under: new(ring)}
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
