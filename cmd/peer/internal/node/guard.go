package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/cmd/peer/internal/conn"
)

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// errKept says why the proxy gets no connection.
var errKept = errors.New("nothing is forwarded to the admin and gossip ports of peers, nor to this machine for others")

// guarded returns a dialFunc that closes connections to destinations that access forbids.
func guarded(dial dialFunc, access func() *conn.Access) dialFunc {
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
func (n *Node) proxyAccess() *conn.Access {
	a := &conn.Access{Ports: n.config().ConnectPorts, Peers: n.gossipAddrs}
	if n.admin != nil {
		a.Admin, _ = netip.ParseAddrPort(n.admin.Addr().String())
	}
	if !n.config().Reverse() {
		a.Clients = n.config().ProxyClients
	}
	return a
}

// siblingAccess is proxyAccess for requests to siblings.
func (n *Node) siblingAccess() *conn.Access {
	a := n.proxyAccess()
	a.Clients = nil
	return a
}

// gossipAddrs returns the gossip addresses of all members.
func (n *Node) gossipAddrs() (list []netip.AddrPort) {
	if n.gossip == nil {
		return nil
	}
	add := func(s string) {
		if a, err := netip.ParseAddrPort(s); err == nil {
			list = append(list, a)
		}
	}
	add(n.gossip.Addr())
	soon, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	members, _ := n.readings.peers.get(soon, n.gossip.Members) // the last known ones if the exchange hangs
	for _, m := range members {
		add(m.Addr)
	}
	return list
}

// adminAccess returns which requests the admin listener answers.
func (n *Node) adminAccess() admin.Access {
	hosts := slices.Concat(n.config().AdminHosts, []string{n.config().Name, n.config().Advertise})
	if host, _, err := net.SplitHostPort(n.config().Admin); err == nil {
		hosts = append(hosts, host)
	}
	return admin.Access{Hosts: hosts, Token: n.config().AdminToken, Profiles: n.config().Profiles == "on"}
}
