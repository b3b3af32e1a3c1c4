package conn

import (
	"container/heap"
	"container/list"
	"context"
	"crypto/tls"
	"hash/maphash"
	"math"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/budget"
)

// Limits bound the connections of a listener and their memory. When one more arrives at a limit, a silent or idle
// connection is closed for it, in the order of a [queue]: one of the same address, if that address
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

// A Gate counts the connections of a listener. It is safe for concurrent use. A request that fits takes no
// lock and no memory.
type Gate struct {
	limits Limits

	mu     sync.Mutex
	used   int // by connections and requests of HTTP/2
	hosts  map[netip.Prefix]*host
	credit credits
	conns  queue
	apart  list.List  // of *request, those that do not belong to a connection of HTTP/1
	stuck  []*request // may be cut, the last first; see makeRoom
	looked time.Time  // for those, last

	patience         atomic.Int64 // see SetPatience
	dropped, refused atomic.Int64
	waiting          atomic.Int64            // requests that wait for memory
	closing          atomic.Bool             // see CloseUnused
	watched          []*Conn                 // whose clients may leave; guarded by mu
	judges           bool                    // has a handler, which says what was served; see Requests
	unread           func(string, int)       // see OnUnread
	holds            []func(context.Context) // of its listeners
}

// host is an address that connections come from.
type host struct {
	from     netip.Prefix
	used     int // as that of the gate
	conns    queue
	requests atomic.Int64 // bytes of memory
	credit   *credit
}

// NewGate returns a gate with these limits.
func NewGate(limits Limits) *Gate {
	return &Gate{limits: limits, hosts: make(map[netip.Prefix]*host), credit: credits{seed: maphash.MakeSeed()}}
}

// SetPatience replaces the patience of the gate's listeners (see [Listen]) for connections that are accepted from now
// on.
func (g *Gate) SetPatience(limit time.Duration) { g.patience.Store(int64(limit)) }

// Stats returns how many connections are open, how many idle ones were closed to make room for
// others, and how many new ones were refused.
func (g *Gate) Stats() (open int, dropped, refused int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.conns.Len(), g.dropped.Load(), g.refused.Load()
}

// pass is the place of a connection in its gate.
type pass struct {
	gate  *Gate // nil = not counted
	host  *host
	asked atomic.Bool  // a request has come to the server
	since atomic.Int64 // when it became idle, Unix nanoseconds; 0 = a request is under way
	gone  atomic.Bool
	place [2]place // in the queues of the gate and of its host

	served    atomic.Bool // a request was answered
	handled   atomic.Bool // a handler has the request that the server has read last
	one       atomic.Bool // a request has come to the server by HTTP/1 and TLS
	lingering atomic.Bool // see lingers

	unheard atomic.Bool  // what is read now is of a header
	header  atomic.Int64 // bytes of memory that it takes
	scan    codedScan    // of the header

	request request // the one under way by HTTP/1
}

func (g *Gate) hold(f func(context.Context)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holds = append(g.holds, f)
}

// brief is how long a request may take that is not waited for before the server stops for a moment.
const brief = time.Second / 10

// Calm waits until no request has been under way for longer than that: then few are cut, and none that is long. It ends
// with ctx at the latest.
func (g *Gate) Calm(ctx context.Context) {
	for before, long := g.turns(), true; long && ctx.Err() == nil; {
		sleep(ctx, brief)
		now := g.turns()
		long = false
		for q, turn := range now {
			long = long || before[q] == turn
		}
		before = now
	}
}

// sleep waits for a time, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// turns returns the requests under way, each with the number of its turn.
func (g *Gate) turns() map[*request]uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	turns := make(map[*request]uint64)
	for q := range g.requests {
		if turn := q.turn.Load(); turn%2 == 1 {
			turns[q] = turn
		}
	}
	return turns
}

// Hold has the listeners accept no further connection, and waits a moment for the first requests of those
// that there are: a client that has just connected is answered. It ends with ctx at the latest.
func (g *Gate) Hold(ctx context.Context) {
	g.mu.Lock()
	holds := g.holds
	g.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, firstWait)
	defer cancel()
	for _, hold := range holds {
		hold(ctx)
	}
	for g.unused() != nil && ctx.Err() == nil {
		sleep(ctx, firstWait/20)
	}
}

// firstWait is the time for which a connection may be silent when the server is about to stop.
const firstWait = time.Second / 5

// unused returns the connections whose server has had no request.
func (g *Gate) unused() (list []*Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.conns.list {
		if !c.pass.asked.Load() {
			list = append(list, c)
		}
	}
	return list
}

// CloseUnused closes the connections whose server has had no request yet, and all new ones from now
// on: browsers and Go's own client open some ahead of need. [net/http.Server.Shutdown] waits five
// to six seconds for them, which is longer than some peers are given to stop, although it answers
// no request whose header is read after its call.
func (g *Gate) CloseUnused() {
	g.closing.Store(true)
	for _, c := range g.unused() {
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
		own, all := g.full(h, now)
		most := half(g.limits.Connections)
		own = own || int64(h.conns.Len()+1)*perConn > most
		all = all || g.limits.Connections.Room() < 2*most/keptConn && !h.mayHaveKept(now)
		if !own && !all && g.limits.Connections.Take(perConn) {
			g.enter(c, h, now)
			return true
		}
		if !g.closeIdle(h, own, now) {
			g.refuse(h)
			return false
		}
	}
}

// full reports whether an address has all of its places, and whether all places are taken that it may have.
func (g *Gate) full(h *host, now time.Time) (own, all bool) {
	l, kept := &g.limits, 0
	if !h.mayHaveKept(now) {
		kept = l.Conns / keptConn
	}
	return l.PerHost > 0 && h.used >= l.PerHost, l.Conns > 0 && g.used >= l.Conns-kept
}

// closeIdle closes the connection that is to give way first, of one address if own is set, and
// reports whether there was one. It is called with g.mu held.
func (g *Gate) closeIdle(h *host, own bool, now time.Time) bool {
	idle := &g.conns
	if own {
		idle = &h.conns
	}
	c := idle.first(now)
	if c == nil {
		return false
	}
	g.dropped.Add(1)
	g.leave(c)
	c.Conn.Close() // of the connection below TLS, which waits for nothing
	return true
}

// refuse is called with g.mu held.
func (g *Gate) refuse(h *host) {
	g.refused.Add(1)
	g.tidy(h)
}

// half returns half of what an account could hold at this moment.
func half(a *budget.Account) int64 { return (a.Held() + min(a.Room(), math.MaxInt64/2)) / 2 }

// host returns the host of an address.
func (g *Gate) host(from netip.Prefix) *host {
	h := g.hosts[from]
	if h == nil {
		h = &host{from: from, credit: g.credit.of(from)}
		h.conns.of = 1
		g.hosts[from] = h
	}
	return h
}

// tidy forgets an address if nothing of it is left. It is called with g.mu held.
func (g *Gate) tidy(h *host) {
	if h.used == 0 && h.requests.Load() == 0 && g.hosts[h.from] == h {
		delete(g.hosts, h.from)
	}
}

// enter is called with g.mu held.
func (g *Gate) enter(c *Conn, h *host, now time.Time) {
	h.used++
	g.used++
	p := &c.pass
	p.gate, p.host = g, h
	p.request.host, p.request.conn = h, c
	c.sealed.Store(true)
	p.since.Store(now.UnixNano())
	p.unheard.Store(true)
	for _, q := range []*queue{&g.conns, &h.conns} {
		heap.Push(q, c)
		q.silent.Add(1)
	}
}

// leave is called with g.mu held.
func (g *Gate) leave(c *Conn) {
	if c.pass.gone.Swap(true) {
		return
	}
	h := c.pass.host
	c.pass.serve() // silent no more
	g.release(c)
	heap.Remove(&g.conns, c.pass.place[0].at)
	heap.Remove(&h.conns, c.pass.place[1].at)
	g.limits.Connections.Give(perConn)
	g.used--
	h.used--
	g.tidy(h)
}

// Idle notes whether a request is under way on a server's connection. It does nothing for
// connections that [Listen] did not make or that no gate counts.
func Idle(c net.Conn, idle bool) {
	own := below(c)
	if own == nil || own.pass.gate == nil || own.pass.lingering.Load() {
		return
	}
	switch p := &own.pass; {
	case !idle:
		p.since.Store(0)
		if t, ok := c.(*tls.Conn); ok && !p.asked.Load() {
			p.one.Store(t.ConnectionState().NegotiatedProtocol != "h2")
		}
		p.asked.Store(true)
		p.unheard.Store(false)
	case p.since.Load() == 0:
		p.gate.release(own)
		p.scan.next()
		p.handled.Store(false)
		p.unheard.Store(true)
		p.since.Store(time.Now().UnixNano())
		if !p.gate.judges {
			p.serve()
		}
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

// Close implements [net.Conn]. After CloseUnused it lets a request be answered that the server does not know of.
func (c *Conn) Close() error {
	if q := c.quick; q != nil && c.pass.gate.closing.Load() && q.life.Load() != nil {
		if q.closing.Store(true); q.life.Load() != nil {
			return nil
		}
	}
	if g := c.pass.gate; g != nil {
		if c.lingers() {
			return nil
		}
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
