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

	"github.com/summarycache/summarycache/gossip/invalidation"
	"github.com/summarycache/summarycache/gossip/peering"
)

const (
	// coalesceFor is how long an owner remembers the peer that fetches an object, after the fetch
	// is expected to have ended. By then the digest of that peer has usually arrived.
	coalesceFor = 2 * time.Second

	coalesceField = "Summarycache-Fetching"
	askTimeout    = 50 * time.Millisecond
	membersFor    = time.Second // for which a list of members is used
	maxInFlight   = 64 << 10
	// for a peer that is fetching, added to its deadline, if fetches of the origin take less than half of it
	fetchWait = 2 * time.Second
)

// atMost returns the time in which a fetch will have ended, if it is expected to take fetch; 0 =
// unknown. It is [fetchWait] to peering.MaxWait.
func atMost(fetch time.Duration) time.Duration { return min(max(2*fetch, fetchWait), peering.MaxWait) }

// A coalescer lets several peers that miss the same object, at the same time or one soon after
// another, share one fetch, before a digest can advertise the object. PROTOCOL.md, section 14, has
// the message. For each key one living member, chosen by rendezvous hashing,
// is the owner. It remembers which peer was the first to fetch the key, until the digest with it has
// had time to spread. A peer that misses asks the owner. If no other peer is fetching or has
// just fetched, it fetches; otherwise it requests the object from that one, and waits. So no peer
// waits for one that waits. The answer of an owner is a hint: peers may temporarily differ in the
// members that they know, owners forget, and the peer that they name may have nothing to share.
//
// Owners are asked only while that pays: see [coalescer.InFlight]. A coalescer is safe for
// concurrent use, and answers the other peers as an [http.Handler].
type coalescer struct {
	asked, found, sent atomic.Uint64 // as [peering.Coalescer] counts them

	cfg    peering.CoalescerConfig
	health *Health
	yield  yield

	mu     sync.Mutex
	first  map[uint64]inFlight // by key
	owners owners
	read   time.Time // when its members were read
	swept  time.Time // when expired entries were last removed from first
}

// An inFlight entry names the peer that was the first to fetch.
type inFlight struct {
	name  string
	until time.Time
}

// NewCoalescer returns what lets peers that miss one object share a fetch, for package httpcache and peer: nothing of the
// result is promised. It panics if a field other than Admit is missing. An owner that failed recently by h, or is too far away to
// answer in time, is not asked. An owner that fails is suspended for lookup requests, too, but not one that is silent.
func NewCoalescer(c peering.CoalescerConfig, h *Health) peering.Coalescer {
	if checkName(c.Name) != nil || c.Others == nil || c.Key == nil || c.HTTP == nil || h == nil {
		panic("sibling: NewCoalescer needs a Name that can stand in Via, and Others, Key, HTTP and Health")
	}
	return &coalescer{cfg: c, health: h, yield: yield{share: yieldAtFirst}, first: make(map[uint64]inFlight)}
}

// Counts returns how often owners were looked up, with another peer as the result, and by a message.
func (c *coalescer) Counts() (asked, found, sent uint64) {
	return c.asked.Load(), c.found.Load(), c.sent.Load()
}

// A Peer is a living member of the cluster.
type Peer = peering.Peer

// InFlight returns the sibling that is fetching the object of an identity, or has just fetched it. If
// there is none, the owner remembers that this peer is fetching it. fetch is the expected time of a
// fetch; 0 = unknown.
//
// It waits for the owner's answer for at most 50 ms, and asks only while that pays: of the objects
// that this peer fetches, others must want more than half at about the same time, or that share
// times the time of a fetch must exceed the round trip to an owner, or an invalidation has just
// removed objects here ([coalescer.Invalidated]). The share is known from
// the answers of owners and, without a message, from requests that join a fetch, and from those of
// peers that an owner sent here ([coalescer.Joined], [coalescer.Served]).
func (c *coalescer) InFlight(ctx context.Context, identity string, fetch time.Duration) (Peer, bool) {
	key := c.cfg.Key(identity)
	owner, ok := c.owner(key)
	if !ok {
		return Peer{}, false
	}
	name := ""
	switch {
	case owner.Name == c.cfg.Name:
		name = c.enter(key, c.cfg.Name, fetch)
	case !c.yield.pays(fetch, time.Now()):
		return Peer{}, false
	default:
		c.sent.Add(1)
		start := time.Now()
		got, err := c.ask(ctx, owner, key, fetch)
		if ctx.Err() == nil {
			c.health.record(outcome{peer: owner.Name, kind: question, result: answerOf(err), took: time.Since(start)})
		}
		if err == nil {
			name = got
			c.yield.asked(time.Since(start), name != "")
		}
	}
	c.asked.Add(1)
	addr := c.addr(name)
	if addr == "" {
		return Peer{}, false
	}
	c.found.Add(1)
	return Peer{Name: name, Addr: addr}, true
}

// Joined reports that a request joined a fetch at this peer, which shows that several clients
// want an object at once.
func (c *coalescer) Joined() { c.yield.wanted(true) }

// Served reports that another peer got an object here, by a request with that header, and so need
// not have fetched it. Only one that an owner has sent here waits.
func (c *coalescer) Served(request http.Header) {
	if peering.PreferredWait(request) > 0 {
		c.yield.wanted(true)
	}
}

// Invalidated reports that an invalidation of the cluster has removed n objects here. What this owner
// remembers of the objects that it selects is dropped, except for variants: the peers that fetched
// them do not hold them any more. All peers will miss these objects, so as many fetches of the next
// minute ask owners in any case.
func (c *coalescer) Invalidated(t invalidation.Target, n int) {
	c.yield.removes(n, time.Now())
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.Kind == invalidation.Identity {
		delete(c.first, c.cfg.Key(t.Name))
	} else {
		clear(c.first)
	}
}

// enter returns the peer that is fetching a key or has just fetched it; "" = no peer but the one of
// that name, which is then remembered. It expects to take fetch.
func (c *coalescer) enter(key uint64, name string, fetch time.Duration) string {
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
		c.first[key] = inFlight{name, now.Add(atMost(fetch) + coalesceFor)}
	}
	return ""
}

// ask asks an owner which peer is fetching a key, which takes about fetch; "" = none.
func (c *coalescer) ask(ctx context.Context, owner Peer, key uint64, fetch time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(peering.WithPeer(ctx, owner.Name), askTimeout)
	defer cancel()
	r := (&http.Request{
		Method: http.MethodGet,
		URL:    &url.URL{Scheme: "http", Host: owner.Addr, Path: peering.CoalescePath, RawQuery: "key=" + strconv.FormatUint(key, 16) + "&ms=" + strconv.FormatInt(min(fetch, peering.MaxWait).Milliseconds(), 10)},
		Header: http.Header{"Via": {"1.1 " + c.cfg.Name}, "User-Agent": {""}},
		Proto:  "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	resp, err := c.cfg.HTTP.RoundTrip(r)
	if err != nil {
		return "", err
	}
	io.CopyN(io.Discard, resp.Body, 4<<10)
	resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusNoContent:
		return resp.Header.Get(coalesceField), nil
	case http.StatusForbidden: // it does not know this member yet, and is no worse a sibling for that
		return "", nil
	}
	return "", errors.New("sibling: owner answered " + resp.Status)
}

// answerOf returns the result of a question. A process that gets too little CPU time misses such short deadlines, and
// its siblings would then be asked for nothing: silence does not suspend them.
func answerOf(err error) result {
	switch {
	case err == nil:
		return answered
	case errors.Is(err, context.DeadlineExceeded):
		return silent
	}
	return failed
}

// ServeHTTP answers a member that is about to fetch.
func (c *coalescer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := peering.Asker(r.Header)
	query := r.URL.Query()
	key, err := strconv.ParseUint(query.Get("key"), 16, 64)
	if err != nil || c.addr(name) == "" || c.cfg.Admit != nil && c.cfg.Admit(r, name) != nil {
		http.Error(w, "for members only", http.StatusForbidden)
		return
	}
	h := w.Header()
	ms, _ := strconv.ParseUint(query.Get("ms"), 10, 16)
	if first := c.enter(key, name, time.Duration(ms)*time.Millisecond); first != "" {
		h.Set(coalesceField, first)
	}
	h["Date"] = nil // no use for it here
	w.WriteHeader(http.StatusNoContent)
}
