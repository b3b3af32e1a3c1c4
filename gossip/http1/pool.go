package http1

import (
	"cmp"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	mostHosts   = 4096             // that are remembered without a connection
	mostIdle    = 64               // connections to one host that are kept
	surplusTime = time.Minute      // how long no connection is kept to a host that sent more than its answers
	sweepEvery  = 15 * time.Second // kept connections are looked at
)

// A pool is what a transport knows of hosts, with the connections that are kept.
type pool struct {
	mu    sync.Mutex
	hosts map[destination]*host
	idle  int         // connections without a request
	sweep *time.Timer // runs while there are hosts
}

type destination struct{ scheme, addr string } // addr = host:port

// A host is where requests go. Its fields are guarded by the pool's mutex.
type host struct {
	destination
	pool       *pool
	name, port string
	uses       int       // requests that are being sent, and connections
	last       time.Time // when the last request came
	idle       []*conn   // the one that was used last is the last
	surplus    time.Time // when it was last seen to send more than its answers
	told       time.Time // when that was last said
	addresses  addresses
	h2         multiplexed
}

// host returns the host of that name, with or without a port. done must be called after the request was sent.
func (t *Transport) host(scheme, authority string) *host {
	name, port, err := net.SplitHostPort(authority)
	if err != nil {
		name, port = strings.Trim(authority, "[]"), ""
	}
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	name = strings.ToLower(name)
	at := destination{scheme, net.JoinHostPort(name, port)}
	now := time.Now()
	p := &t.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.hosts[at]
	if h == nil {
		if len(p.hosts) >= mostHosts {
			p.forget(func(h *host) bool { return h.uses == 0 })
		}
		if p.hosts == nil {
			p.hosts = make(map[destination]*host)
		}
		h = &host{destination: at, pool: p, name: name, port: port}
		p.hosts[at] = h
		if len(p.hosts) == 1 {
			p.sweep = time.AfterFunc(sweepEvery, t.look)
		}
	}
	h.uses++
	h.last = now
	t.refresh(h, now)
	return h
}

func (t *Transport) done(h *host) {
	t.pool.mu.Lock()
	h.uses--
	t.pool.mu.Unlock()
}

// forget drops hosts. The caller holds p.mu.
func (p *pool) forget(which func(*host) bool) {
	for at, h := range p.hosts {
		if which(h) {
			h.h2.end()
			delete(p.hosts, at)
		}
	}
}

// kept returns a connection to a host that is kept, and nothing has come on it; nil = there is none.
func (t *Transport) kept(h *host) *conn {
	p := &t.pool
	for { // each round takes one
		p.mu.Lock()
		n := len(h.idle) - 1
		if n < 0 {
			p.mu.Unlock()
			return nil
		}
		c := h.idle[n]
		h.idle = h.idle[:n]
		p.idle--
		p.mu.Unlock()
		if c.expired(time.Now()) {
			c.Close()
			continue
		}
		switch c.quiet() {
		case nothing:
			return c
		case something:
			t.untidy(h)
		}
		c.Close()
	}
}

// keep keeps a connection for further requests, unless a host has enough of them, or should have none.
func (t *Transport) keep(c *conn) {
	now := time.Now()
	most := cmp.Or(t.MaxIdle, 128)
	p, h := &t.pool, c.host
	c.since = now
	var no *conn
	p.mu.Lock()
	switch {
	case c.expired(now), now.Sub(h.surplus) < surplusTime && !h.surplus.IsZero(), !h.addresses.have(c.addr):
		no = c
	case len(h.idle) >= max(1, min(mostIdle, most/2)):
		no = h.idle[0]
		h.idle = append(slices.Delete(h.idle, 0, 1), c)
	default:
		if p.idle++; p.idle > most {
			no = p.any()
		}
		h.idle = append(h.idle, c)
	}
	p.mu.Unlock()
	if no != nil {
		no.Close()
	}
}

// any takes the oldest connection of a host that has one. Which host is left to chance: with so many of them the next
// request is as likely for one as for another. The caller holds p.mu.
func (p *pool) any() *conn {
	for _, h := range p.hosts {
		if len(h.idle) > 0 {
			c := h.idle[0]
			h.idle = slices.Delete(h.idle, 0, 1)
			p.idle--
			return c
		}
	}
	return nil
}

// untidy notes that a host has sent more than its answers. What comes late on a connection cannot be told from
// the next answer, so that none is kept for a while.
func (t *Transport) untidy(h *host) {
	t.pool.mu.Lock()
	now := time.Now()
	told := now.Sub(h.told) < surplusTime && !h.told.IsZero()
	if h.surplus = now; !told {
		h.told = now
	}
	no := t.pool.take(h, func(*conn) bool { return true })
	t.pool.mu.Unlock()
	closeAll(no)
	if t.Surplus != nil && !told {
		t.Surplus(h.addr)
	}
}

// take takes those of a host's kept connections that are to go. The caller holds p.mu.
func (p *pool) take(h *host, goes func(*conn) bool) (no []*conn) {
	h.idle = slices.DeleteFunc(h.idle, func(c *conn) bool {
		if !goes(c) {
			return false
		}
		no = append(no, c)
		return true
	})
	p.idle -= len(no)
	return no
}

// look closes kept connections that have expired or that the other end has closed, and forgets hosts without requests.
func (t *Transport) look() {
	now := time.Now()
	var no []*conn
	p := &t.pool
	p.mu.Lock()
	for _, h := range p.hosts {
		no = append(no, p.take(h, func(c *conn) bool { return c.expired(now) || c.look != nil && c.look() != nothing })...)
	}
	p.forget(func(h *host) bool { return h.uses == 0 && now.Sub(h.last) > idleTimeout })
	if len(p.hosts) > 0 {
		p.sweep.Reset(sweepEvery)
	}
	p.mu.Unlock()
	closeAll(no)
}

// CloseIdleConnections closes the connections that no request uses.
func (t *Transport) CloseIdleConnections() {
	var no []*conn
	var h2 []*http.Transport
	t.pool.mu.Lock()
	for _, h := range t.pool.hosts {
		no = append(no, t.pool.take(h, func(*conn) bool { return true })...)
		if h.h2.transport != nil {
			h2 = append(h2, h.h2.transport)
		}
	}
	t.pool.mu.Unlock()
	closeAll(no)
	for _, one := range h2 {
		one.CloseIdleConnections()
	}
}

func closeAll(list []*conn) {
	for _, c := range list {
		c.Close()
	}
}

// addresses are those of a host's name; see [Transport.Addresses].
type addresses struct {
	list    []netip.Addr // nil = not looked up
	at      time.Time    // when they were
	looking bool         // they are being looked up
	turn    int          // of the connections
	refused map[netip.Addr]time.Time
}

// have reports whether a connection's address is one of the name's; none = it was not dialled by address.
func (a *addresses) have(addr netip.Addr) bool {
	return !addr.IsValid() || slices.Contains(a.list, addr)
}
