package conn

import (
	"bytes"
	"errors"
)

// What a header takes in memory while its request is under way, as measured: about twice its
// text, and an entry for each field.
const (
	perByte     = 2
	perField    = 112
	headerShare = 8 << 10 // bytes for each connection; what a header takes above that comes from the shares of all connections
)

var errHeaders = errors.New("conn: no memory left for so long a header")

// Read implements [net.Conn]. It fails for a header that takes more than its share when the
// shares of all connections are used up.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.pass.unheard.Load() {
		if !c.pass.gate.keep(c, p[:n]) {
			return 0, errHeaders
		}
		c.pass.scan.piece(p[:n])
	}
	return n, err
}

// keep counts what a piece of a header takes until the connection is idle again or closed. It
// reports whether there is memory for it.
func (g *Gate) keep(c *Conn, piece []byte) bool {
	cost := int64(perByte*len(piece) + perField*bytes.Count(piece, []byte{'\n'}))
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.pass.gone {
		return false
	}
	c.pass.header += cost
	g.headers += cost
	if g.limits.Conns == 0 || c.pass.header <= headerShare || g.headers <= int64(g.limits.Conns)*headerShare {
		return true
	}
	g.refused.Add(1)
	return false
}

// release gives back what a header took. g.mu is held.
func (g *Gate) release(c *Conn) {
	g.headers -= c.pass.header
	c.pass.header = 0
}
