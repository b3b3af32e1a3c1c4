package conn

import (
	"container/list"
	"math"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/budget"
	"github.com/summarycache/summarycache/cmd/peer/internal/planted"
)

// Limits bound the connections of a listener and their memory. When one more arrives at a limit, the
// connection that has been idle for longest is closed for it: one of the same address, if that address
// is at its limit. If none is idle, the new one is refused. For a request it is the request whose
// client has taken nothing for longest.
type Limits struct {
	Conns   int // at a time; 0 = no bound
	PerHost int // of them from one address, or one /64 of IPv6; 0 = no bound

	// Memory of connections and of requests; nil = no bound. One address may have half of each.
	Connections, Requests *budget.Account
}

// What connections and requests take in memory, as measured, in bytes.
const (
	perConn    = 24 << 10  // a goroutine or two, whose stacks have grown, two buffers of 4 KiB
	perRequest = 96 << 10  // under way: a block of the body, a buffer to its source or client, goroutines
	perTunnel  = 48 << 10  // instead, by CONNECT
	perUpload  = 64 << 10  // more if it has a body, which goes through buffers
	perWindow  = 256 << 10 // instead, if that comes by HTTP/2: the window of its connection
)

// unasked is the time after which a connection without a request counts as idle, like one
// whose request was answered.
const unasked = time.Second

// A Gate counts the connections of a listener. It is safe for concurrent use.
type Gate struct {
	limits Limits

	mu       sync.Mutex
	conns    map[*Conn]struct{}
	used     int // by connections and requests of HTTP/2
	hosts    map[netip.Prefix]*host
	idle     list.List // of *Conn, the longest idle first
	requests list.List // of *request, those that were not looked at for longest first

	dropped, refused atomic.Int64
	closing          atomic.Bool // see CloseUnused
}

// host is an address that connections come from.
type host struct {
	used     int // as that of the gate
	conns    int
	requests int64     // bytes of memory
	idle     list.List // as that of the gate
}

// NewGate returns a gate with these limits.
func NewGate(limits Limits) *Gate {
	return &Gate{limits: limits, conns: make(map[*Conn]struct{}), hosts: make(map[netip.Prefix]*host)}
}

// Stats returns how many connections are open, how many idle ones were closed to make room for
// others, and how many new ones were refused.
func (g *Gate) Stats() (open int, dropped, refused int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.conns), g.dropped.Load(), g.refused.Load()
}

// pass is the place of a connection in its gate. Its fields are guarded by the gate's mu.
type pass struct {
	gate   *Gate // nil = not counted
	from   netip.Prefix
	since  time.Time     // when it became idle, or was accepted
	asked  bool          // a request has come
	idle   *list.Element // in those of the gate; nil = a request is under way
	idleOf *list.Element // in those of its host
	gone   bool

	unheard atomic.Bool // what is read now is of a header
	header  int64       // bytes of memory that it takes
	scan    codedScan   // of the first header

	requests int
	request  atomic.Pointer[request] // the one under way by HTTP/1, if a gate counts it
}

// CloseUnused closes the connections that have had no request yet, and all new ones from now
// on: browsers and Go's own client open some ahead of need. [net/http.Server.Shutdown] waits five
// to six seconds for them, which is longer than some peers are given to stop, although it answers
// no request whose header is read after its call.
func (g *Gate) CloseUnused() {
	g.closing.Store(true)
	g.mu.Lock()
	var unused []*Conn
	for c := range g.conns {
		if !c.pass.asked {
			unused = append(unused, c)
		}
	}
	g.mu.Unlock()
	for _, c := range unused {
		c.Close()
	}
}

// admit counts c, and reports whether it may stay.
func (g *Gate) admit(c *Conn, now time.Time) bool {
	if g.closing.Load() {
		return false
	}
	from := prefixOf(c.RemoteAddr().String())
	g.mu.Lock()
	defer g.mu.Unlock()
	for { // each round but the last closes an idle connection
		h := g.host(from)
		own, all := g.full(h)
		own = own || int64(h.conns+1)*perConn > half(g.limits.Connections)
		if !own && !all && g.limits.Connections.Take(perConn) {
			g.enter(c, h, from, now)
			return true
		}
		if !g.closeIdle(h, own, now) {
			g.refuse(from)
			return false
		}
	}
}

// full reports whether an address has all of its places, and whether all places are taken.
func (g *Gate) full(h *host) (own, all bool) {
	l := &g.limits
	return l.PerHost > 0 && h.used >= l.PerHost, l.Conns > 0 && g.used >= l.Conns
}

// closeIdle closes the connection that has been idle for longest, of one address if own is set, and
// reports whether there was one. It is called with g.mu held.
func (g *Gate) closeIdle(h *host, own bool, now time.Time) bool {
	idle := &g.idle
	if own {
		idle = &h.idle
	}
	c := oldest(idle, now)
	if c == nil {
		return false
	}
	g.dropped.Add(1)
	if planted.Fault != "dropped-still-counts" {
		g.leave(c)
	}
	c.Conn.Close() // of the connection below TLS, which waits for nothing
	return true
}

// refuse is called with g.mu held.
func (g *Gate) refuse(from netip.Prefix) {
	g.refused.Add(1)
	g.tidy(from)
}

// half returns half of what an account could hold at this moment.
func half(a *budget.Account) int64 { return (a.Held() + min(a.Room(), math.MaxInt64/2)) / 2 }

// host returns the host of an address.
func (g *Gate) host(from netip.Prefix) *host {
	h := g.hosts[from]
	if h == nil {
		h = new(host)
		g.hosts[from] = h
	}
	return h
}

// tidy forgets the host of an address if nothing of it is left. It is called with g.mu held.
func (g *Gate) tidy(from netip.Prefix) {
	if h := g.hosts[from]; h != nil && h.used == 0 && h.requests == 0 {
		delete(g.hosts, from)
	}
}

// oldest returns the connection that has been idle for longest, if it may be closed.
func oldest(idle *list.List, now time.Time) *Conn {
	for e := idle.Front(); e != nil; e = e.Next() { // a list does not change meanwhile
		c := e.Value.(*Conn)
		if c.pass.asked || now.Sub(c.pass.since) >= unasked {
			return c
		}
	}
	return nil
}

// enter is called with g.mu held.
func (g *Gate) enter(c *Conn, h *host, from netip.Prefix, now time.Time) {
	h.conns++
	h.used++
	g.used++
	g.conns[c] = struct{}{}
	c.pass = pass{gate: g, from: from, since: now, idle: g.idle.PushBack(c), idleOf: h.idle.PushBack(c)}
	c.pass.unheard.Store(true)
}

// leave is called with g.mu held.
func (g *Gate) leave(c *Conn) {
	if c.pass.gone {
		return
	}
	c.pass.gone = true
	g.release(c)
	g.busy(c)
	delete(g.conns, c)
	g.limits.Connections.Give(perConn)
	g.used--
	h := g.hosts[c.pass.from]
	h.used--
	h.conns--
	g.tidy(c.pass.from)
}

// busy is called with g.mu held.
func (g *Gate) busy(c *Conn) {
	if c.pass.idle != nil {
		g.idle.Remove(c.pass.idle)
		g.hosts[c.pass.from].idle.Remove(c.pass.idleOf)
		c.pass.idle, c.pass.idleOf = nil, nil
	}
}

// Idle notes whether a request is under way on a server's connection. It does nothing for
// connections that [Listen] did not make or that no gate counts.
func Idle(c net.Conn, idle bool) {
	own := below(c)
	if own == nil || own.pass.gate == nil {
		return
	}
	g := own.pass.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case own.pass.gone:
	case !idle:
		own.pass.asked = true
		own.pass.requests++
		own.pass.unheard.Store(false)
		g.busy(own)
	case own.pass.idle == nil:
		g.release(own)
		own.pass.unheard.Store(true)
		own.pass.since = time.Now()
		own.pass.idle, own.pass.idleOf = g.idle.PushBack(own), g.hosts[own.pass.from].idle.PushBack(own)
	}
}

// below returns the Conn that c is or wraps; nil = none.
func below(c net.Conn) *Conn {
	for range 4 { // no connection is wrapped more often
		if own, ok := c.(*Conn); ok {
			return own
		}
		wrapper, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		c = wrapper.NetConn()
	}
	return nil
}

// Close implements [net.Conn].
func (c *Conn) Close() error {
	if g := c.pass.gate; g != nil {
		g.mu.Lock()
		g.leave(c)
		g.mu.Unlock()
	}
	return c.Conn.Close()
}

// prefixOf returns the network that an address counts for.
func prefixOf(addr string) netip.Prefix {
	ap, _ := netip.ParseAddrPort(addr) // the zero AddrPort if it has none
	ip := ap.Addr().Unmap().WithZone("")
	bits := ip.BitLen()
	if ip.Is6() {
		bits = 64
	}
	p, _ := ip.Prefix(bits)
	return p
}
