package conn

import (
	"bytes"
	"net/http"
	"strconv"
)

// OnUnread has f called for each request by HTTP/1 that the server refuses because it cannot read it: no handler gets
// such a one. from is the client's address, with its port. It is called before connections are accepted, for a gate
// with a handler (see [Gate.Requests]); f must not block. Below TLS the status
// cannot be seen, and is 400.
func (g *Gate) OnUnread(f func(from string, status int)) { g.unread = f }

// mostAlert is how many bytes TLS writes for itself, after its handshake, at most. An answer has more.
const mostAlert = 48

// refusal looks whether p, which the server writes, refuses a request that has come to no handler.
func (c *Conn) refusal(p []byte) {
	if g := c.pass.gate; g == nil || g.unread == nil || c.pass.handled.Load() ||
		c.quick != nil && c.quick.life.Load() != nil {
		return
	}
	if c.sealed.Load() {
		if c.pass.one.Load() && len(p) > mostAlert {
			c.pass.handled.Store(true)
			c.pass.gate.unread(c.RemoteAddr().String(), http.StatusBadRequest)
		}
		return
	}
	const version, digits = "HTTP/1.1 ", 3
	rest, ok := bytes.CutPrefix(p, []byte(version))
	if status, err := strconv.Atoi(string(rest[:min(digits, len(rest))])); ok && err == nil && status >= 400 {
		c.pass.gate.unread(c.RemoteAddr().String(), status)
	}
}
