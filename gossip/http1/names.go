package http1

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"time"
)

const (
	lookupEvery = 30 * time.Second       // Go's resolver does not say how long an answer is valid
	lookupTime  = 10 * time.Second       // of a lookup beside requests
	lookLeast   = time.Second            // between lookups because no known address can be reached
	lookAfter   = time.Second            // after the last attempt to connect, until the name is looked up beside it
	nextAfter   = 250 * time.Millisecond // between attempts to connect to two addresses (RFC 8305 section 8)
	restAfter   = 30 * time.Second       // how long an address that refused is tried last
)

// dial makes a connection to a host.
func (t *Transport) dial(ctx context.Context, h *host) (*conn, error) {
	list, err := t.lookup(ctx, h)
	switch {
	case err != nil:
		return nil, err
	case len(list) == 0:
		return t.dialTo(ctx, h, h.addr, netip.Addr{})
	}
	return t.race(ctx, h, list)
}

func (t *Transport) dialTo(ctx context.Context, h *host, addr string, ip netip.Addr) (*conn, error) {
	dial := t.Dial
	if dial == nil {
		dial = (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext
	}
	raw, err := dial(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return t.newConn(h, raw, ip), nil
}

// race connects to the first address that answers. The next one is tried when one has failed, or has not answered
// for a moment. Where none of them answers, the name may have moved: then it is looked up once more, for further ones.
func (t *Transport) race(ctx context.Context, h *host, list []netip.Addr) (*conn, error) {
	type result struct {
		c   *conn
		ip  netip.Addr
		err error
	}
	ctx, cancel := context.WithCancel(ctx)
	results := make(chan result)
	begun, ended := 0, 0
	defer func() {
		cancel()
		if late := begun - ended; late > 0 {
			go func() {
				for range late {
					if r := <-results; r.c != nil {
						r.c.Close()
					}
				}
			}()
		}
	}()
	next := time.NewTimer(0)
	defer next.Stop()
	var (
		errs   error
		failed []netip.Addr
		more   chan []netip.Addr // of the lookup
		looked bool
	)
	for { // an attempt for each address, of which the one lookup adds some, begins and ends once
		select {
		case <-next.C:
			switch {
			case begun < len(list):
				ip := list[begun]
				go func() {
					c, err := t.dialTo(ctx, h, net.JoinHostPort(ip.String(), h.port), ip)
					results <- result{c, ip, err}
				}()
				if begun++; begun < len(list) {
					next.Reset(nextAfter)
				} else {
					next.Reset(lookAfter)
				}
			case more == nil:
				more = make(chan []netip.Addr, 1)
				go func() { more <- t.moved(ctx, h, list) }()
			}
		case found := <-more:
			looked, list = true, append(list, found...)
			if ended == len(list) {
				return nil, errs
			}
			next.Reset(0)
		case r := <-results:
			ended++
			if r.err == nil {
				for _, ip := range list[:slices.Index(list, r.ip)] { // these had longer
					if !slices.Contains(failed, ip) {
						t.refused(h, ip)
					}
				}
				return r.c, nil
			}
			t.refused(h, r.ip)
			failed = append(failed, r.ip)
			errs = errors.Join(errs, r.err)
			if looked && ended == len(list) {
				return nil, errs
			}
			next.Reset(0)
		}
	}
}

// moved returns the addresses of a host that a list lacks. They are looked up unless that was a moment ago.
func (t *Transport) moved(ctx context.Context, h *host, list []netip.Addr) (more []netip.Addr) {
	t.pool.mu.Lock()
	late := time.Since(h.addresses.at) >= lookLeast
	t.pool.mu.Unlock()
	if late {
		if found, _ := t.Addresses(ctx, h.name); ctx.Err() == nil {
			t.learn(h, found)
		}
	}
	t.pool.mu.Lock()
	defer t.pool.mu.Unlock()
	for _, ip := range h.addresses.order(time.Now()) {
		if !slices.Contains(list, ip) {
			more = append(more, ip)
		}
	}
	return more
}

// lookup returns the addresses of a host in the order in which to try them; none = it is dialled by name.
func (t *Transport) lookup(ctx context.Context, h *host) ([]netip.Addr, error) {
	if t.Addresses == nil {
		return nil, nil
	}
	if _, err := netip.ParseAddr(h.name); err == nil {
		return nil, nil
	}
	t.pool.mu.Lock()
	known := h.addresses.list != nil
	t.pool.mu.Unlock()
	if !known {
		list, err := t.Addresses(ctx, h.name)
		if err != nil {
			return nil, err
		}
		t.learn(h, list)
	}
	t.pool.mu.Lock()
	defer t.pool.mu.Unlock()
	return h.addresses.order(time.Now()), nil
}

// order returns all addresses, another one first each time, and last those that refused.
func (a *addresses) order(now time.Time) []netip.Addr {
	if len(a.list) == 0 {
		return nil
	}
	a.turn = (a.turn + 1) % len(a.list)
	list := slices.Concat(a.list[a.turn:], a.list[:a.turn])
	rests := func(ip netip.Addr) int {
		if at, ok := a.refused[ip]; ok && now.Sub(at) < restAfter {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(list, func(x, y netip.Addr) int { return rests(x) - rests(y) })
	return list
}

// refused notes that an address cannot be used, and reports whether that is new.
func (t *Transport) refused(h *host, ip netip.Addr) (fresh bool) {
	t.pool.mu.Lock()
	defer t.pool.mu.Unlock()
	if h.addresses.refused == nil {
		h.addresses.refused = make(map[netip.Addr]time.Time)
	}
	now := time.Now()
	fresh = now.Sub(h.addresses.refused[ip]) >= restAfter
	h.addresses.refused[ip] = now
	return fresh
}

// refresh looks up the addresses of a host again, beside the request. The caller holds the pool's mutex.
func (t *Transport) refresh(h *host, now time.Time) {
	a := &h.addresses
	if a.list == nil || a.looking || now.Sub(a.at) < lookupEvery {
		return
	}
	a.looking = true
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), lookupTime)
		defer cancel()
		list, _ := t.Addresses(ctx, h.name)
		t.learn(h, list)
	}()
}

// learn notes the addresses of a host, unless there are none, and closes kept connections to others.
func (t *Transport) learn(h *host, list []netip.Addr) {
	for i := range list {
		list[i] = list[i].Unmap()
	}
	t.pool.mu.Lock()
	a := &h.addresses
	a.looking, a.at = false, time.Now()
	var no []*conn
	if len(list) > 0 {
		a.list = list
		no = t.pool.take(h, func(c *conn) bool { return !a.have(c.addr) })
		if !a.have(h.h2.addr) {
			h.h2.end()
		}
		for ip := range a.refused {
			if !a.have(ip) {
				delete(a.refused, ip)
			}
		}
	}
	t.pool.mu.Unlock()
	closeAll(no)
}
