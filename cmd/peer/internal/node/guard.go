package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/cmd/peer/internal/authority"
)

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// errKept says why the proxy gets no connection.
var errKept = errors.New("nothing is forwarded to the admin and gossip ports of peers, nor to this machine for others")

// guarded returns a dialFunc that closes connections to destinations that access forbids.
func guarded(dial dialFunc, access func() *authority.Forward) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err == nil && !access().Destination(c) {
			c.Close()
			return nil, fmt.Errorf("%s: %w", addr, errKept)
		}
		return c, err
	}
}

// proxyAccess returns the clients and destinations of a forward proxy. For requests to siblings,
// and to the origin of a reverse proxy, it only forbids the cluster's own ports.
func (n *Node) proxyAccess() *authority.Forward {
	a := &authority.Forward{Ports: n.config().ConnectPorts, Peers: n.gossipAddrs}
	if n.admin != nil {
		a.Admin, _ = netip.ParseAddrPort(n.admin.Addr().String())
	}
	if !n.config().Reverse() {
		a.Clients = n.config().ProxyClients
	}
	return a
}

// siblingAccess is proxyAccess for requests to siblings.
func (n *Node) siblingAccess() *authority.Forward {
	a := n.proxyAccess()
	a.Clients = nil
	return a
}

// gossipAddrs returns the gossip addresses of all members. Origins are checked before there is gossip.
func (n *Node) gossipAddrs() (list []netip.AddrPort) {
	gossip := n.gossips.Load()
	if gossip == nil {
		return nil
	}
	add := func(s string) {
		if a, err := netip.ParseAddrPort(s); err == nil {
			list = append(list, a)
		}
	}
	add(gossip.Addr())
	soon, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	members, _ := n.readings.peers.get(soon, gossip.Members) // the last known ones if the exchange hangs
	for _, m := range members {
		add(m.Addr)
	}
	return list
}

// adminAccess returns which requests the admin listener answers.
func (n *Node) adminAccess() admin.Access {
	host, _ := n.config().Advertised()
	hosts := slices.Concat(n.config().AdminHosts, []string{n.config().Name, host})
	if host, _, err := net.SplitHostPort(n.config().Admin); err == nil {
		hosts = append(hosts, host)
	}
	who := authority.Operators{Tokens: []string{n.config().AdminToken, n.session}}
	return admin.Access{Hosts: hosts, Operators: who, Session: n.session, Profiles: n.config().Profiles == "on"}
}

// socketAccess is adminAccess for the peer's Unix socket.
func (n *Node) socketAccess() admin.Access {
	a := n.adminAccess()
	a.Operators.Socket = true
	return a
}

// openSocket opens the peer's Unix socket. It is in the store's directory, of which this process has the lock: what is
// there was left behind by another that is gone. Without it commands need a token.
func (n *Node) openSocket() {
	path, err := filepath.Abs(filepath.Join(n.config().Store, "admin.sock"))
	if err == nil {
		os.Remove(path)
		n.socket, err = net.Listen("unix", path)
	}
	if err == nil {
		if err = os.Chmod(path, 0o600); err != nil {
			n.socket.Close()
			n.socket = nil
		}
	}
	if err != nil {
		n.log.Warn("there is no Unix socket: commands need --admin-token-file", "err", err)
	}
}
