package crowd

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

	"github.com/summarycache/summarycache/gossip/sibling"
)

const (
	// Path is where homes are asked.
	Path = "/.well-known/summarycache-fetching"

	// Remember is for how long a home remembers who fetches: until the digest of
	// who has fetched is there, mostly.
	Remember = 2 * time.Second

	field      = "Summarycache-Fetching"
	askTimeout = 50 * time.Millisecond
	membersFor = time.Second // for which a list of members is good
	maxEntries = 64 << 10
)

// A Member is a living peer.
type Member struct{ Name, Addr string }

// Config says who is there. All fields but Admit are needed.
type Config struct {
	Name   string                       // of this peer
	Others func() []Member              // the other living members
	Key    func(identity string) uint64 // the same at all peers
	HTTP   http.RoundTripper            // to other peers
	Wait   time.Duration                // for which an answer of who fetches is waited for, besides the usual
	// Health of the other members: a home that failed lately, or is too far to answer in
	// time, is not asked, and one that fails is not asked for objects either.
	Health *sibling.Health
	// Admit says why a request is not from the peer that it names; nil = it is.
	Admit func(r *http.Request, name string) error
}

// A Crowd is one peer's part. It is safe for concurrent use.
type Crowd struct {
	Asked, Told atomic.Uint64 // homes asked, this peer too; of those, that knew somebody

	cfg Config

	mu      sync.Mutex
	first   map[uint64]entry // by key
	members []Member
	hashes  []uint64 // of their names
	read    time.Time
	swept   time.Time // when what had run out was last removed for want of room
}

// An entry is who was first to fetch.
type entry struct {
	name  string
	until time.Time
}

// New returns a Crowd.
func New(c Config) *Crowd {
	return &Crowd{cfg: c, first: make(map[uint64]entry)}
}

// Fetching returns the sibling that is fetching the object of an identity, if
// there is one, and else remembers for the others that this peer is. It waits for
// the home's answer, for 50 ms at most.
func (c *Crowd) Fetching(ctx context.Context, identity string) (sibling.Candidate, bool) {
	key := c.cfg.Key(identity)
	home, ok := c.home(key)
	if !ok {
		return sibling.Candidate{}, false
	}
	c.Asked.Add(1)
	name := ""
	if home.Name == c.cfg.Name {
		name = c.enter(key, c.cfg.Name)
	} else {
		start := time.Now()
		got, err := c.ask(ctx, home, key)
		if name = got; ctx.Err() == nil {
			c.cfg.Health.Asked(home.Name, time.Since(start), err)
		}
	}
	addr := c.addr(name)
	if addr == "" {
		return sibling.Candidate{}, false
	}
	c.Told.Add(1)
	return sibling.Candidate{Peer: name, Addr: addr, Wait: c.cfg.Wait}, true
}

// enter returns who fetches, other than the one that says that it is about to;
// "" = nobody did.
func (c *Crowd) enter(key uint64, name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if e, ok := c.first[key]; ok && now.Before(e.until) && e.name != name {
		return e.name
	}
	if len(c.first) >= maxEntries && now.Sub(c.swept) >= Remember/4 {
		c.swept = now
		for k, e := range c.first {
			if !now.Before(e.until) {
				delete(c.first, k)
			}
		}
	}
	if len(c.first) < maxEntries {
		c.first[key] = entry{name, now.Add(Remember)}
	}
	return ""
}

// ask asks a home.
func (c *Crowd) ask(ctx context.Context, home Member, key uint64) (string, error) {
	ctx, cancel := context.WithTimeout(sibling.WithPeer(ctx, home.Name), askTimeout)
	defer cancel()
	r := (&http.Request{
		Method: http.MethodGet,
		URL:    &url.URL{Scheme: "http", Host: home.Addr, Path: Path, RawQuery: "key=" + strconv.FormatUint(key, 16)},
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
		return "", errors.New("crowd: " + resp.Status)
	}
	return resp.Header.Get(field), nil
}

// ServeHTTP answers a member that is about to fetch.
func (c *Crowd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := sibling.Asker(r.Header)
	key, err := strconv.ParseUint(r.URL.Query().Get("key"), 16, 64)
	if err != nil || c.addr(name) == "" || c.cfg.Admit != nil && c.cfg.Admit(r, name) != nil {
		http.Error(w, "for members only", http.StatusForbidden)
		return
	}
	h := w.Header()
	if first := c.enter(key, name); first != "" {
		h.Set(field, first)
	}
	h["Date"] = nil // it is told nothing by it
	w.WriteHeader(http.StatusNoContent)
}
