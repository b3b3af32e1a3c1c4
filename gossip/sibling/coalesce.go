package sibling

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// CoalescePath is where owners are asked, at the address where siblings are.
	CoalescePath = "/.well-known/summarycache-fetching"

	// coalesceFor is for how long an owner remembers which peer fetches: mostly until the
	// digest of that peer is there.
	coalesceFor = 2 * time.Second

	coalesceField = "Summarycache-Fetching"
	askTimeout    = 50 * time.Millisecond
	membersFor    = time.Second // for which a list of members is good
	maxInFlight   = 64 << 10
	fetchWait     = 2 * time.Second // for an answer of the one that fetches, besides the usual; whole seconds
)

// A Peer is a living member of the cluster.
type Peer struct{ Name, Addr string }

// CoalescerConfig describes this peer and the others. All fields except Admit are needed.
type CoalescerConfig struct {
	Name   string                       // of this peer
	Others func() []Peer                // the other living members
	Key    func(identity string) uint64 // the same at all peers
	HTTP   http.RoundTripper            // to other peers
	// Advertised reports whether another peer's digest has an identity. It must neither
	// block nor do I/O.
	Advertised func(identity string) bool
	// Health of the other members: an owner that failed lately, or is too far to answer
	// in time, is not asked, and one that fails is not asked for objects either.
	Health *Health
	// Admit says why a request is not from the peer that it names, or returns nil; without
	// it, every request is taken to be.
	Admit func(r *http.Request, name string) error
}

// A Coalescer lets several peers that miss the same object at the same time share one
// fetch, before any digest can tell. For each key one live member is the owner, by
// rendezvous hashing, and remembers for a moment which peer was the first to fetch it. A
// peer that misses asks the owner, by a GET that has the key and not the URL. If no peer
// is ahead of it, it fetches. Else it asks the first one, and waits; so no peer waits for
// one that waits. What an owner says is a hint: peers differ at times in the members that
// they know of, and owners forget.
//
// An owner is asked only while that pays: see [Coalescer.InFlight]. A Coalescer is safe
// for concurrent use, and answers the others as an [http.Handler].
type Coalescer struct {
	Asked, Told atomic.Uint64 // lookups of owners, this peer too; of those, that named a peer
	Sent        atomic.Uint64 // of Asked, to other peers: a short message and its answer

	cfg   CoalescerConfig
	yield yield

	mu      sync.Mutex
	first   map[uint64]inFlight // by key
	members []Peer
	hashes  []uint64 // of their names
	read    time.Time
	swept   time.Time // when what had run out was last removed for want of room
}

// An inFlight is which peer was the first to fetch.
type inFlight struct {
	name  string
	until time.Time
}

// NewCoalescer returns a Coalescer.
func NewCoalescer(c CoalescerConfig) *Coalescer {
	return &Coalescer{cfg: c, yield: yield{share: 1}, first: make(map[uint64]inFlight)}
}

// InFlight returns the sibling that is fetching the object of an identity, if there is
// one, and else has the owner remember that this peer is. fetch is how long a fetch
// takes, about; 0 = unknown.
//
// It waits for the owner's answer, for 50 ms at most, and asks only while that pays: as
// long as the share of fetches that others make too, times what one takes, is above the
// round trip to an owner. That share is known from owners' answers and, without a
// message, from requests that join a fetch and from what others come to advertise that
// they did not get here ([Coalescer.Joined], [Coalescer.Served]).
func (c *Coalescer) InFlight(ctx context.Context, identity string, fetch time.Duration) (Peer, bool) {
	if c.cfg.Key == nil { // the zero Coalescer is alone
		return Peer{}, false
	}
	key := c.cfg.Key(identity)
	owner, ok := c.owner(key)
	if !ok {
		return Peer{}, false
	}
	name := ""
	switch {
	case owner.Name == c.cfg.Name:
		name = c.enter(key, c.cfg.Name)
	case !c.yield.pays(fetch):
		c.yield.fetches(identity, time.Now(), c.cfg.Advertised)
		return Peer{}, false
	default:
		c.Sent.Add(1)
		start := time.Now()
		got, err := c.ask(ctx, owner, key)
		if ctx.Err() == nil {
			c.cfg.Health.Asked(owner.Name, time.Since(start), err)
		}
		if err == nil {
			name = got
			c.yield.asked(time.Since(start), name != "")
		}
	}
	c.Asked.Add(1)
	addr := c.addr(name)
	if addr == "" {
		return Peer{}, false
	}
	c.Told.Add(1)
	return Peer{name, addr}, true
}

// Joined tells that a request joined a fetch that is under way at this peer: objects
// are asked for by several at once.
func (c *Coalescer) Joined() { c.yield.note(true) }

// Served tells that another peer got an object here: it need not have fetched it.
func (c *Coalescer) Served(identity string) { c.yield.served(identity) }

// enter returns the peer that fetches, other than the one that is about to; "" =
// nobody did.
func (c *Coalescer) enter(key uint64, name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if e, ok := c.first[key]; ok && now.Before(e.until) && e.name != name {
		return e.name
	}
	if len(c.first) >= maxInFlight && now.Sub(c.swept) >= coalesceFor/4 {
		c.swept = now
		for k, e := range c.first {
			if !now.Before(e.until) {
				delete(c.first, k)
			}
		}
	}
	if len(c.first) < maxInFlight {
		c.first[key] = inFlight{name, now.Add(coalesceFor)}
	}
	return ""
}

// ask asks an owner.
func (c *Coalescer) ask(ctx context.Context, owner Peer, key uint64) (string, error) {
	ctx, cancel := context.WithTimeout(WithPeer(ctx, owner.Name), askTimeout)
	defer cancel()
	r := (&http.Request{
		Method: http.MethodGet,
		URL:    &url.URL{Scheme: "http", Host: owner.Addr, Path: CoalescePath, RawQuery: "key=" + strconv.FormatUint(key, 16)},
		Header: http.Header{"Via": {"1.1 " + c.cfg.Name}, "User-Agent": {""}},
		Proto:  "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	resp, err := c.cfg.HTTP.RoundTrip(r)
	if err != nil {
		return "", err
	}
	io.CopyN(io.Discard, resp.Body, 4<<10)
	resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		return "", errors.New("sibling: owner answered " + resp.Status)
	}
	return resp.Header.Get(coalesceField), nil
}

// ServeHTTP answers a member that is about to fetch.
func (c *Coalescer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := Asker(r.Header)
	key, err := strconv.ParseUint(r.URL.Query().Get("key"), 16, 64)
	if err != nil || c.cfg.Others == nil || c.addr(name) == "" || c.cfg.Admit != nil && c.cfg.Admit(r, name) != nil {
		http.Error(w, "for members only", http.StatusForbidden)
		return
	}
	h := w.Header()
	if first := c.enter(key, name); first != "" {
		h.Set(coalesceField, first)
	}
	h["Date"] = nil // nobody needs it
	w.WriteHeader(http.StatusNoContent)
}
