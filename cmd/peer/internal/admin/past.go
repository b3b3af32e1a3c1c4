package admin

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/proxy"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
)

const (
	keptMisses = 4096 // how many misses a peer remembers
	longestURL = 512  // bytes of each
)

// A Miss is a request of a client that was not answered from the store of its peer, or not wholly.
type Miss struct {
	At      time.Time `json:"at"` // when the answer ended
	Peer    string    `json:"peer"`
	Method  string    `json:"method"`
	URL     string    `json:"url"`     // at most 512 bytes of it; ending in "?…" if its query is left out
	Outcome string    `json:"outcome"` // as in the metric peer_requests_total
	Reason  string    `json:"reason"`  // as in Cache-Status after fwd, why it was no hit; "" = unknown
	// as in Cache-Status after detail: why the answer was not stored, or what else there is to say
	Detail  string  `json:"detail"`
	Status  int     `json:"status"`
	Stored  bool    `json:"stored"`  // the answer was, or was being
	Sibling string  `json:"sibling"` // that answered; "" = none
	Asked   int     `json:"asked"`   // siblings
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
	Why     string  `json:"why"`   // in words
	Error   string  `json:"error"` // why it failed or was cut short; "" = it was not
}

// A PastRequest selects misses. Empty fields select all.
type PastRequest struct {
	URL        string    `json:"url,omitempty"`  // a part of the URL
	Site       string    `json:"site,omitempty"` // its host
	Reason     string    `json:"reason,omitempty"`
	Outcome    string    `json:"outcome,omitempty"`
	Since      time.Time `json:"since,omitzero"`
	Last       int       `json:"last,omitempty"`    // of them; 0 = all that there are
	Exact      string    `json:"exact,omitempty"`   // the whole URL
	Queries    bool      `json:"queries,omitempty"` // URLs with their queries
	Everywhere bool      `json:"everywhere,omitempty"`
}

// Misses are those of one peer or of all.
type Misses struct {
	Misses []Miss   `json:"misses"` // the latest first
	Silent []Holder `json:"silent"` // peers that do not answer, and why
}

// Past remembers the last misses. The zero Past is ready for use. It is safe for concurrent use.
type Past struct {
	mu   sync.Mutex
	ring []Miss // without peer and words, which are added for those who ask
	next int
}

// Observe remembers a request if it is a client's that wants an object, and no whole hit. A hit costs no memory here.
func (p *Past) Observe(e proxy.Event) {
	if e.Request.Method == "PURGE" || e.Request.Proto == "" { // the latter nobody could read
		return
	}
	if !e.Sibling && !e.Refused && e.Status != http.StatusMisdirectedRequest &&
		(e.Outcome != engine.LocalHit || e.Broken) {
		p.remember(e)
	}
}

func (p *Past) remember(e proxy.Event) { p.add(&e, e.URL()) }

func (p *Past) add(e *proxy.Event, target string) {
	m := Miss{At: time.Now(), Method: e.Request.Method, URL: target, Outcome: e.Outcome.String(), Reason: e.Said.Fwd, Detail: e.Said.Detail, Status: e.Status,
		Stored: e.Said.Stored, Sibling: e.Peer, Asked: e.Asked, Bytes: e.Bytes, Seconds: e.Duration.Seconds()}
	if len(m.URL) > longestURL {
		m.URL = strings.ToValidUTF8(m.URL[:longestURL-3], "") + "…"
	}
	m.URL = strings.Clone(m.URL) // it must not keep the request
	if e.Err != nil {
		m.Error = e.Err.Error()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ring) < keptMisses {
		p.ring = append(p.ring, m)
		return
	}
	p.ring[p.next] = m
	p.next = (p.next + 1) % keptMisses
}

// Latest returns the misses that q selects, the latest first.
func (p *Past) Latest(peer string, q PastRequest) []Miss {
	p.mu.Lock()
	all := slices.Concat(p.ring[p.next:], p.ring[:p.next])
	p.mu.Unlock()
	list := []Miss{}
	for _, m := range slices.Backward(all) {
		if q.Last > 0 && len(list) == q.Last || !q.Since.IsZero() && !m.At.After(q.Since) {
			break
		}
		if q.selects(&m) {
			m.Peer, m.Why, m.URL = peer, m.words(), shown(m.URL, q.Queries)
			list = append(list, m)
		}
	}
	return list
}

// pastRequest reads a PastRequest from the query of a URL.
func pastRequest(v url.Values) (q PastRequest, err error) {
	q = PastRequest{URL: v.Get("url"), Site: v.Get("site"), Reason: v.Get("reason"), Outcome: v.Get("outcome"),
		Queries: v.Get("queries") == "1", Everywhere: v.Get("everywhere") == "1"}
	if q.Since, err = sinceOf(v); err != nil {
		return q, err
	}
	if text := v.Get("last"); text != "" {
		if q.Last, err = strconv.Atoi(text); err != nil || q.Last < 0 {
			return q, errors.New("last is not a count")
		}
	}
	return q, nil
}

// sinceOf reads a time from the query of a URL; zero = it has none.
func sinceOf(v url.Values) (at time.Time, err error) {
	if v.Has("since") {
		if at, err = time.Parse(time.RFC3339, v.Get("since")); err != nil {
			err = errors.New("since is not a time such as 2026-01-02T03:04:05Z (RFC 3339)")
		}
	}
	return at, err
}

// values returns the query from which pastRequest reads q.
func (q PastRequest) values() url.Values {
	v := url.Values{"url": {q.URL}, "site": {q.Site}, "reason": {q.Reason}, "outcome": {q.Outcome},
		"last": {strconv.Itoa(q.Last)}}
	if !q.Since.IsZero() {
		v.Set("since", q.Since.UTC().Format(time.RFC3339Nano))
	}
	for name, set := range map[string]bool{"queries": q.Queries, "everywhere": q.Everywhere} {
		if set {
			v.Set(name, "1")
		}
	}
	return v
}

func (q *PastRequest) selects(m *Miss) bool {
	return strings.Contains(m.URL, q.URL) && (q.Exact == "" || m.URL == q.Exact) &&
		(q.Site == "" || siteOf(m.URL) == q.Site) && (q.Reason == "" || m.Reason == q.Reason || m.Detail == q.Reason) &&
		(q.Outcome == "" || m.Outcome == q.Outcome)
}

// shown returns a URL, without its query unless that is wanted: it may have names and tokens of people.
func shown(text string, query bool) string {
	if before, _, ok := strings.Cut(text, "?"); ok && !query {
		return before + "?…"
	}
	return text
}

// siteOf returns the host of a URL, and of the target of a CONNECT.
func siteOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return cmp.Or(u.Host, text)
}

// MissesOf puts the misses of several peers in order.
func MissesOf(own []Miss, others [][]Miss, last int) []Miss {
	all := slices.Concat(append([][]Miss{own}, others...)...)
	slices.SortStableFunc(all, func(a, b Miss) int { return b.At.Compare(a.At) })
	if last > 0 {
		all = all[:min(len(all), last)]
	}
	return all
}
