package node

import (
	"net"
	"net/http"
	"sync"
)

// unused are the connections of a server over which no request has come yet:
// browsers and Go's own client open some ahead of need. To
// [http.Server.Shutdown] they are requests under way for five to six seconds,
// which is longer than some peers are given to stop, though it answers none whose
// header is read after its call. So these are closed first.
type unused struct {
	mu       sync.Mutex
	conns    map[net.Conn]struct{}
	stopping bool
}

// of makes u follow the connections of server, before it serves.
func (u *unused) of(server *http.Server) {
	u.conns = make(map[net.Conn]struct{})
	server.ConnState = u.changed
	server.RegisterOnShutdown(u.close)
}

func (u *unused) changed(c net.Conn, state http.ConnState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case state != http.StateNew:
		delete(u.conns, c)
	case u.stopping: // accepted just before the listener closed
		c.Close()
	default:
		u.conns[c] = struct{}{}
	}
}

func (u *unused) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.stopping = true
	for c := range u.conns {
		c.Close()
	}
}
