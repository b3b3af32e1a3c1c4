package conn

import (
	"bytes"
	"errors"
)

// What a header takes in memory while its request is under way, as measured: about twice its
// text, and an entry for each field.
const (
	perByte    = 2
	perField   = 112
	freeHeader = 2 << 10 // bytes that belong to the connection
)

var errHeaders = errors.New("conn: no memory left for so long a header")

// maxEmptyLines is how many bytes of empty lines are dropped before a request, as RFC 9112 section 2.2 asks; the server
// would answer 400. What TLS and HTTP/2 begin with is none. Behind a request that the server has read it may have read
// them already: then they stay, unless that was a POST, behind which it drops them itself.
const maxEmptyLines = 8

// Read implements [net.Conn]. It fails for a header for which there is no memory.
func (c *Conn) Read(p []byte) (int, error) {
	if q := c.quick; q != nil && len(q.ahead) > 0 {
		n := copy(p, q.ahead)
		q.ahead = q.ahead[n:]
		return n, nil
	}
	n, err := c.begin(p, 0)
	if q := c.quick; q != nil && n > 0 {
		switch {
		case !q.elsewhere && err == nil && c.pass.unheard.Load() && n == len(p) && n == len(preface):
			n, err = c.first(p)
			return c.short(p, n), err
		case !q.elsewhere && err == nil && c.pass.unheard.Load():
			n, err = c.answer(p, n)
		case !q.elsewhere || q.begun != nil:
			q.elsewhere = true
			q.follow(p[:n])
		}
	}
	n, err = c.heard(p, n, err)
	return c.short(p, n), err
}

// begin reads the beginning of a request, of which p has n bytes, without the empty lines before it.
func (c *Conn) begin(p []byte, n int) (int, error) {
	for { // each round but the last drops at least a byte
		most := min(n, c.emptyLines)
		if rest := bytes.TrimLeft(p[:most], "\r\n"); n > most || len(rest) > 0 {
			c.emptyLines = 0
			return copy(p, p[most-len(rest):n]), nil
		}
		c.emptyLines -= n
		var err error
		if n, err = c.Conn.Read(p); n == 0 || err != nil {
			return n, err
		}
	}
}

// short fills p, of which the server gets n bytes, if they end a connection's first line before that has as many bytes as
// HTTP/2 begins with. The server would wait for these; now it refuses the line, which is of HTTP/0.9 at best.
func (c *Conn) short(p []byte, n int) int {
	if 0 < n && n < len(p) && len(p) <= len(preface) && p[n-1] == '\n' && !c.pass.asked.Load() {
		for ; n < len(p); n++ {
			p[n] = '\n'
		}
	}
	return n
}

// heard counts what the server gets of a header.
func (c *Conn) heard(p []byte, n int, err error) (int, error) {
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
	if c.pass.header.Load()+cost <= freeHeader {
		c.pass.header.Add(cost)
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.pass.gone.Load() {
		return false
	}
	after := c.pass.header.Add(cost)
	if g.take(c.pass.host, after-freeHeader-max(0, after-cost-freeHeader)) {
		return true
	}
	c.pass.header.Add(-cost)
	g.refused.Add(1)
	return false
}

// release gives back what a header took.
func (g *Gate) release(c *Conn) {
	if took := c.pass.header.Swap(0) - freeHeader; took > 0 {
		g.give(c.pass.host, took)
	}
}
