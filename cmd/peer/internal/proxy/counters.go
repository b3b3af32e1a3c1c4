package proxy

import (
	"math/bits"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/engine"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// An Event is one finished request.
type Event struct {
	requestTarget string   // in the request line
	target        *url.URL // its absolute URL; nil if the request was refused before that was known
	engine.Result
	Sibling  bool          // the request came from a sibling (only-if-cached, by way of another cache)
	Refused  bool          // it named a sibling that did not send it
	Closed   bool          // it came from a Squid and was answered by closing the connection
	Duration time.Duration // from the request's arrival to the answer's end
	Request  *http.Request // as received; it must not be kept or changed. Without Proto, nobody could read it
	Client   string        // the address of the client; see [Handler.Client]
	Trace    string        // the identifier of the request's trace, hexadecimal; "" = none
}

// URL returns the URL of the request. For a CONNECT it is the target, and for a refused request
// the target in the request line.
func (e *Event) URL() string {
	if e.target == nil {
		return e.requestTarget
	}
	return e.target.String()
}

// Target returns the target of a request line as logs may have it: without the name and password that a URL may hold.
func Target(r *http.Request) string {
	if r.URL == nil || r.URL.User == nil {
		return r.RequestURI
	}
	scheme, rest, _ := strings.Cut(r.RequestURI, "//")
	end := len(rest)
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		end = i
	}
	return scheme + "//" + rest[strings.LastIndexByte(rest[:end], '@')+1:]
}

// Counts is a snapshot of a [Handler]'s counters. All start at 0 and only grow. Requests is the
// sum of the ten outcomes below it.
type Counts struct {
	Requests      uint64 `json:"requests"` // all, siblings' included
	LocalHits     uint64 `json:"local_hits"`
	Revalidations uint64 `json:"revalidations"` // stale copies confirmed while a client waited
	SiblingHits   uint64 `json:"sibling_hits"`
	OriginFetches uint64 `json:"origin_fetches"` // requests that a cache may answer, answered by the origin
	Collapsed     uint64 `json:"collapsed"`
	Bypassed      uint64 `json:"bypassed"` // requests that no cache may answer, answered by the origin
	NotCached     uint64 `json:"not_cached"`
	ClientErrors  uint64 `json:"client_errors"`
	GatewayErrors uint64 `json:"gateway_errors"`
	ClientsGone   uint64 `json:"clients_gone"`

	// answers cut short after they began, by this peer or by the client
	BrokenBodies uint64 `json:"broken_bodies"`
	StaleServed  uint64 `json:"stale_served"`
	Stored       uint64 `json:"stored"`
	// complete origin responses to GET, by the reason why they were not stored (an [rfc9111.Obstacle])
	NotStored     map[string]uint64 `json:"not_stored"`
	Invalidations uint64            `json:"invalidations"` // responses removed by unsafe methods
	// requests sent to origins, validations and background ones included
	OriginRequests uint64 `json:"origin_requests"`
	OriginErrors   uint64 `json:"origin_errors"`  // of those, failed without an answer
	Background     uint64 `json:"background"`     // fetches that no client waited for
	BodiesResumed  uint64 `json:"bodies_resumed"` // bodies whose source ended early, continued from another source
	// bodies whose source made no progress, continued from another source
	BodiesTakenOver uint64 `json:"bodies_taken_over"`
	BodiesCut       uint64 `json:"bodies_cut"` // bodies that no source could finish
	Tunnels         uint64 `json:"tunnels"`

	SiblingRequests uint64 `json:"sibling_requests"` // requests to siblings
	SiblingsUseful  uint64 `json:"siblings_useful"`  // of those, answered with a usable object
	FalseHits       uint64 `json:"false_hits"`       // of those, answered that there is no fresh copy
	SiblingErrors   uint64 `json:"sibling_errors"`   // of those, failed or too slow
	// of the failed, not counted against the sibling: this process was late, or most siblings were
	SiblingsExcused uint64 `json:"siblings_excused"`
	SiblingsOutrun  uint64 `json:"siblings_outrun"` // of the requests to siblings, overtaken by a hedge

	SiblingsCompared uint64 `json:"siblings_compared"` // siblings' answers compared with the origin's
	SiblingsRefuted  uint64 `json:"siblings_refuted"`  // of those, different from the origin's
	SiblingsAccused  uint64 `json:"siblings_accused"`  // quarantines of a sibling for a corrupt or invented body

	// further requests, to siblings or origins, sent because a sibling was late
	Hedges        uint64 `json:"hedges"`
	HedgesWon     uint64 `json:"hedges_won"`     // of those, answered first
	OriginsOutrun uint64 `json:"origins_outrun"` // hedges to origins that the late sibling overtook
	HedgesDenied  uint64 `json:"hedges_denied"`  // hedges not sent, since the budget was spent

	OwnersAsked uint64 `json:"owners_asked"` // misses that looked for a fetch in progress at the key's owner
	LookupsSent uint64 `json:"lookups_sent"` // of those, lookups sent to another peer
	// of the misses, those that learned of a peer with a fetch in progress
	FetchersFound  uint64 `json:"fetchers_found"`
	FetchersShared uint64 `json:"fetchers_shared"` // of those, misses that got the object from that peer

	// lookup requests that named a sibling that did not send them
	RefusedAskers    uint64 `json:"refused_askers"`
	ServedToSiblings uint64 `json:"served_to_siblings"` // lookup requests of siblings answered with the object
	// lookup requests of siblings answered 504 or, to a Squid, by closing the connection
	NotServedToSiblings uint64 `json:"not_served_to_siblings"`

	BytesToClients    uint64 `json:"bytes_to_clients"` // body bytes, tunnels' included
	BytesToSiblings   uint64 `json:"bytes_to_siblings"`
	BytesFromOrigins  uint64 `json:"bytes_from_origins"` // tunnels' included
	BytesFromSiblings uint64 `json:"bytes_from_siblings"`

	// Histograms of the time from a request's arrival to the end of its answer. Element i counts
	// answers that took less than 2^i eighths of a millisecond and are in no element before it.
	// The last counts all others.
	Latency       []uint64 `json:"latency"`        // clients' hits and misses
	OriginLatency []uint64 `json:"origin_latency"` // of those, answered by the origin
}

// latencies is a histogram as in Counts. The last element counts answers of 4 minutes or more.
type latencies [22]atomic.Uint64

func (l *latencies) observe(d time.Duration) {
	l[min(bits.Len64(uint64(d/(time.Millisecond/8))), len(l)-1)].Add(1)
}

func (l *latencies) counts() []uint64 {
	n := make([]uint64, len(l))
	for i := range l {
		n[i] = l[i].Load()
	}
	return n
}

// counters are those that the Handler itself keeps; others are kept by the cache and by the
// client for siblings.
type counters struct {
	outcomes                        [engine.Outcomes]atomic.Uint64
	broken, stale, tunnels          atomic.Uint64
	served, notServed, refused      atomic.Uint64
	bytesToClients, bytesToSiblings atomic.Uint64
	latency, originLatency          latencies
}

func (c *counters) count(e *Event) {
	c.outcomes[e.Outcome].Add(1)
	if e.Broken {
		c.broken.Add(1)
	}
	if e.Stale {
		c.stale.Add(1)
	}
	if !e.Sibling && e.Outcome >= engine.LocalHit && e.Outcome <= engine.Collapsed {
		c.latency.observe(e.Duration)
		if e.Outcome == engine.OriginFetch {
			c.originLatency.observe(e.Duration)
		}
	}
	switch {
	case e.Refused:
		c.refused.Add(1)
	case !e.Sibling:
		c.bytesToClients.Add(uint64(e.Bytes))
	case e.Outcome == engine.LocalHit && !e.Closed:
		c.served.Add(1)
		c.bytesToSiblings.Add(uint64(e.Bytes))
	default:
		c.notServed.Add(1)
	}
}

// Counters returns a snapshot of the counters.
func (h *Handler) Counters() Counts {
	c, k := &h.counters, &h.cache.Counters
	n := Counts{
		NotStored:           make(map[string]uint64, rfc9111.Obstacles),
		LocalHits:           c.outcomes[engine.LocalHit].Load(),
		Revalidations:       c.outcomes[engine.Revalidated].Load(),
		SiblingHits:         c.outcomes[engine.SiblingHit].Load(),
		OriginFetches:       c.outcomes[engine.OriginFetch].Load(),
		Collapsed:           c.outcomes[engine.Collapsed].Load(),
		Bypassed:            c.outcomes[engine.Bypass].Load(),
		NotCached:           c.outcomes[engine.NotCached].Load(),
		ClientErrors:        c.outcomes[engine.ClientError].Load(),
		GatewayErrors:       c.outcomes[engine.GatewayError].Load(),
		ClientsGone:         c.outcomes[engine.ClientGone].Load(),
		BrokenBodies:        c.broken.Load(),
		StaleServed:         c.stale.Load(),
		Stored:              k.Stored.Load(),
		Invalidations:       k.Invalidations.Load(),
		OriginRequests:      k.OriginRequests.Load(),
		OriginErrors:        k.OriginErrors.Load(),
		Background:          k.Background.Load(),
		BodiesResumed:       k.BodiesResumed.Load(),
		BodiesTakenOver:     k.BodiesTakenOver.Load(),
		BodiesCut:           k.BodiesCut.Load(),
		SiblingsCompared:    k.SiblingsCompared.Load(),
		SiblingsRefuted:     k.SiblingsRefuted.Load(),
		SiblingsAccused:     k.SiblingsAccused.Load(),
		Tunnels:             c.tunnels.Load(),
		RefusedAskers:       c.refused.Load(),
		ServedToSiblings:    c.served.Load(),
		NotServedToSiblings: c.notServed.Load(),
		BytesToClients:      c.bytesToClients.Load(),
		BytesToSiblings:     c.bytesToSiblings.Load(),
		BytesFromOrigins:    k.BytesFromOrigins.Load(),
		Latency:             c.latency.counts(),
		OriginLatency:       c.originLatency.counts(),
	}
	for o := rfc9111.Obstacle(1); o < rfc9111.Obstacles; o++ {
		n.NotStored[o.String()] = k.NotStored[o].Load()
	}
	for i := range c.outcomes {
		n.Requests += c.outcomes[i].Load()
	}
	if s := h.siblings; s != nil {
		k := s.Stats()
		n.SiblingRequests, n.FalseHits = k.Asked, k.FalseHits
		n.SiblingErrors, n.BytesFromSiblings = k.Errors, k.Bytes
		n.SiblingsExcused = k.Excused
		n.FetchersShared, n.OriginsOutrun = k.FetchesShared, k.Origins
		n.SiblingsUseful, n.SiblingsOutrun, n.Hedges, n.HedgesWon, n.HedgesDenied = k.Hits, k.Overtaken, k.Hedges, k.HedgesWon, k.HedgesDenied
	}
	return n
}
