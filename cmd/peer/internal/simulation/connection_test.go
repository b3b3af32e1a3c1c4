package simulation

import (
	"net/http"
	"strings"
)

// The fields of a connection (RFC 9110 section 7.6.1) are for the other end of it only. One page in
// three comes with some, and so do some requests, which also name X-Sort, by which pages vary: for the
// peer it is as if they had none.

const (
	connectionOfOrigin = "Connection: X-Hop\r\nX-Hop: of this connection\r\nKeep-Alive: timeout=50\r\n"
	connectionOfClient = "Connection: X-Ask, X-Sort, keep-alive\r\nX-Ask: of this connection\r\nX-Sort: ss\r\nKeep-Alive: timeout=50\r\nTE: trailers\r\n" +
		"Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic YTpi\r\n"
)

func (p *page) connectionFields() string {
	if p.url < tinyURL && p.url%3 == 1 {
		return connectionOfOrigin
	}
	return ""
}

// judgeConnection checks that a message has no field of another connection.
func (w *world) judgeConnection(h http.Header, r *result, whose string) {
	for _, name := range []string{"X-Hop", "X-Ask", "Keep-Alive", "Te", "Proxy-Connection", "Proxy-Authorization"} {
		if h[name] != nil {
			w.fail("connection", r, "%s has %s: %q of another connection", whose, name, h[name])
		}
	}
	if named := strings.Join(h["Connection"], ", "); strings.Contains(named, "X-") {
		w.fail("connection", r, "%s has Connection: %q", whose, named)
	}
}
