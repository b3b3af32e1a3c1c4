package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
)

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// errOwn is why a connection is refused to the proxy.
var errOwn = errors.New("the peer's own admin listener is not forwarded to")

// guarded keeps the proxy's clients from the peer's admin listener, which trusts
// whoever reaches it. It looks at where a connection ended up, so that no name
// or notation of the address gets around it.
func guarded(dial dialFunc, admin net.Addr) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err == nil && reaches(conn, admin) {
			conn.Close()
			return nil, fmt.Errorf("%s: %w", addr, errOwn)
		}
		return conn, err
	}
}

// ends are those of a [net.Conn].
type ends interface {
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
}

// reaches reports whether conn leads to this machine's listener.
func reaches(conn ends, listener net.Addr) bool {
	to, err1 := netip.ParseAddrPort(conn.RemoteAddr().String())
	from, err2 := netip.ParseAddrPort(conn.LocalAddr().String())
	at, err3 := netip.ParseAddrPort(listener.String())
	if err1 != nil || err2 != nil || err3 != nil || to.Port() != at.Port() {
		return false
	}
	ip := to.Addr().Unmap()
	return ip == at.Addr().Unmap() || at.Addr().IsUnspecified() && (ip.IsLoopback() || ip == from.Addr().Unmap())
}
