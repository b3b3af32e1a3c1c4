package conn

import (
	"cmp"
	"os"
	"time"
)

// mostBehind is how many bytes a connection that is being closed takes from its client.
const mostBehind = 1 << 20

// lingers reports whether the connection is to stay for a while although the server closes it: the client has not
// received all of an answer yet. If it sends anything, or had sent something that nobody read, the system would drop
// the rest of that answer with a reset. Meanwhile the connection is idle, and gives way to others.
func (c *Conn) lingers() bool {
	p := &c.pass
	switch half, ok := c.Conn.(interface{ CloseWrite() error }); {
	case p.lingering.Load():
		return !p.gone.Load()
	case !ok, c.sealed.Load(), p.gone.Load(), p.request.turn.Load()%2 == 1, c.unsent() == 0, half.CloseWrite() != nil:
		return false
	}
	p.since.CompareAndSwap(0, time.Now().UnixNano())
	p.lingering.Store(true)
	go c.linger()
	return true
}

// linger drops what the client sends until it has all of its answer, sends nothing more, takes nothing more for as long
// as a client may, or is closed for others.
func (c *Conn) linger() {
	defer func() {
		c.pass.gate.mu.Lock()
		c.pass.gate.leave(c)
		c.pass.gate.mu.Unlock()
		c.Conn.Close()
	}()
	var drop [2 << 10]byte
	limit, left, unsent, moved := cmp.Or(c.patience.limit, time.Minute), mostBehind, c.unsent(), time.Now()
	for unsent > 0 && left > 0 && time.Since(moved) < limit {
		c.Conn.SetReadDeadline(time.Now().Add(min(limit, time.Second)))
		n, err := c.Conn.Read(drop[:])
		if left -= n; err != nil && !os.IsTimeout(err) {
			return
		}
		if now := c.unsent(); now != unsent {
			unsent, moved = now, time.Now()
		}
	}
}
