package demo

import (
	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/cmd/peer/internal/replay"
	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
)

// Result is the result of a demo. Bytes of messages are payload, without the headers of TLS, TCP,
// UDP and IP.
type Result struct {
	Workload Workload      `json:"workload"`
	Seconds  float64       `json:"seconds"` // for all requests
	Peers    []Row         `json:"peers"`
	Total    Row           `json:"total"`
	Compare  []Alternative `json:"comparison"` // "summarycache", "icp", "none", "floor"
	// OverFloor is by which share the origin fetches exceed those of the floor: one per object, and one per
	// slice of a large one. FalseShare is the share
	// of false hits among the requests to siblings.
	OverFloor  float64 `json:"origin_fetches_over_floor"`
	FalseShare float64 `json:"false_hits_per_sibling_request"`
	Wait       float64 `json:"publish_wait_seconds"`    // the longest time until a change is published
	LagMean    float64 `json:"digest_lag_mean_seconds"` // from the advert of a version until it is applied
	LagMax     float64 `json:"digest_lag_max_seconds"`
	Membership int64   `json:"membership_bytes"`       // of gossip datagrams other than adverts
	Errors     int64   `json:"client_errors"`          // requests that failed or got a wrong body
	FirstError string  `json:"first_client_error"`     // "" = none
	Checked    int64   `json:"body_bytes_checked"`     // of answers, against their URLs
	OriginSeen int     `json:"origin_fetches_counted"` // by the origin itself
}

// Workload describes the requests.
type Workload struct {
	Name     string  `json:"name"`
	Read     string  `json:"read,omitempty"` // of a trace: what the file is, and what of it was used
	Requests int     `json:"requests"`
	Objects  int     `json:"objects"` // distinct ones requested
	Bytes    int64   `json:"bytes"`   // of all objects once
	Clients  int     `json:"clients"` // 0 = unknown, so that requests are assigned at random
	Rate     float64 `json:"rate"`    // requests a second; 0 = unbounded
	Seed     uint64  `json:"seed"`
}

// Row has the numbers of one peer.
type Row struct {
	Name            string `json:"name"`
	replay.Counts          // as its clients saw them
	OriginFetches   int64  `json:"origin_fetches"`
	SiblingRequests int64  `json:"sibling_requests"` // including those to peers with a fetch of the object in progress
	FalseHits       int64  `json:"false_hits"`
	SiblingErrors   int64  `json:"sibling_errors"`
	Hedges          int64  `json:"hedges"`    // further requests, to another source, because a sibling was late
	Overtaken       int64  `json:"overtaken"` // hedges to the origin that the late sibling overtook
	// Missed counts origin fetches of objects that a sibling's store held at that moment.
	Missed            int64 `json:"missed_opportunities"`
	BytesSent         int64 `json:"digest_bytes_sent"`
	BytesReceived     int64 `json:"digest_bytes_received"`
	SnapshotsReceived int64 `json:"snapshots_received"`
	DeltasReceived    int64 `json:"deltas_received"`
	AdvertsSent       int64 `json:"adverts_sent"`
}

// Alternative is the cost of the same requests in one way of cooperating.
type Alternative struct {
	Name          string `json:"name"`
	OriginFetches int64  `json:"origin_fetches"`
	OriginBytes   int64  `json:"origin_bytes"`
	Messages      int64  `json:"messages"` // between peers, besides the objects
	MessageBytes  int64  `json:"message_bytes"`
}

// Late reports whether the requests took a tenth longer than they should have.
func (r *Result) Late() bool {
	return r.Workload.Rate > 0 && r.Seconds > 1+1.1*float64(r.Workload.Requests)/r.Workload.Rate
}

func (r *Row) add(o Row) {
	r.Counts.Add(o.Counts)
	of := func(r *Row) []*int64 {
		return []*int64{&r.OriginFetches, &r.SiblingRequests, &r.FalseHits, &r.SiblingErrors, &r.Hedges, &r.Overtaken, &r.Missed,
			&r.BytesSent, &r.BytesReceived, &r.SnapshotsReceived, &r.DeltasReceived, &r.AdvertsSent}
	}
	for i, n := range of(r) {
		*n += *of(&o)[i]
	}
}

func (c *cluster) result(o Options, seen *replay.Result) *Result {
	r := &Result{
		Workload: Workload{
			Name: o.Trace.Name, Read: o.Read,
			Requests: len(o.Trace.Requests), Objects: len(o.Trace.Sizes), Bytes: o.Trace.Bytes(),
			Clients: o.Trace.Clients(), Rate: o.Rate, Seed: o.Seed,
		},
		Wait:    exchange.Publishing{Interval: o.Publish}.For(o.Peers - 1).Interval.Seconds(),
		Seconds: seen.Seconds, Total: Row{Name: "total"}, Checked: seen.Total.Bytes, Errors: seen.Total.Failed,
		FirstError: seen.FirstError,
	}
	var statuses []admin.Status
	for i, n := range c.nodes {
		s := n.Status()
		statuses = append(statuses, s)
		row := c.row(i, s, seen.Peers[i])
		r.Peers = append(r.Peers, row)
		r.Total.add(row)
		r.LagMean += s.Exchange.LagMean / float64(len(c.nodes))
		r.LagMax = max(r.LagMax, s.Exchange.LagMax)
		r.Membership += s.Exchange.Sent.Membership
	}
	r.OriginSeen = c.origin.Requests()
	r.Compare = c.compare(o, statuses, seen.Ways)
	if floor := r.Floor(); floor > 0 {
		r.OverFloor = float64(r.Total.OriginFetches)/float64(floor) - 1
	}
	if r.Total.SiblingRequests > 0 {
		r.FalseShare = float64(r.Total.FalseHits) / float64(r.Total.SiblingRequests)
	}
	return r
}

// Floor returns how many origin fetches there are at least.
func (r *Result) Floor() int64 { return r.Compare[len(r.Compare)-1].OriginFetches }

// fetches returns how many requests an object costs that is fetched once.
func fetches(size int64) int64 {
	if size < engine.DefaultLarge {
		return 1
	}
	return (size + engine.SliceSize - 1) / engine.SliceSize
}

func (c *cluster) row(i int, s admin.Status, seen replay.Counts) Row {
	t, x := s.Traffic, s.Exchange
	return Row{
		Name: s.Name, Counts: seen, OriginFetches: int64(t.OriginRequests),
		SiblingRequests: int64(t.SiblingRequests + t.FetchersFound), FalseHits: int64(t.FalseHits), SiblingErrors: int64(t.SiblingErrors),
		Hedges: int64(t.Hedges), Overtaken: int64(t.OriginsOutrun), Missed: c.counters[i].missed.Load(),
		BytesSent: x.Sent.Digests(), BytesReceived: x.Received.Digests(),
		SnapshotsReceived: x.SnapshotsReceived, DeltasReceived: x.DeltasReceived, AdvertsSent: x.AdvertsSent,
	}
}

// lookupBytes is roughly the size of a lookup at the key's owner for a fetch in progress, with the
// answer.
const lookupBytes = 160

// compare computes the cost of other ways of cooperating.
//
// With ICP every miss queries all siblings and waits for their answers, so that only objects that no
// sibling holds are fetched from the origin: our fetches without the missed ones. Without cooperation
// each peer fetches each requested object once, since the stores of the demo evict nothing.
func (c *cluster) compare(o Options, statuses []admin.Status, ways []replay.Way) []Alternative {
	ours := Alternative{Name: "summarycache", OriginBytes: c.origin.Bytes()}
	icp := Alternative{Name: "icp", OriginBytes: ours.OriginBytes}
	siblings := int64(len(c.nodes) - 1)
	for i, s := range statuses {
		x := s.Exchange
		ours.OriginFetches += int64(s.Traffic.OriginRequests)
		// a body is requested unless an advert carries it, and a sync is answered
		ours.Messages += x.AdvertsSent + 2*(x.SnapshotsReceived+x.DeltasReceived-x.CarriedReceived) + 2*x.Syncs
		ours.Messages += 2 * int64(s.Traffic.LookupsSent)
		ours.MessageBytes += x.Received.Digests() + x.Received.Membership + lookupBytes*int64(s.Traffic.LookupsSent)
		icp.OriginFetches += int64(s.Traffic.OriginRequests) - c.counters[i].missed.Load()
		icp.OriginBytes -= c.counters[i].missedBytes.Load()
	}
	alone := Alternative{Name: "none"}
	type pair struct {
		peer   int
		target string
	}
	seen := make(map[pair]bool)
	peers := o.Trace.Assign(len(c.nodes), o.Seed)
	for i, r := range o.Trace.Requests {
		if ways[i] == replay.Sibling || ways[i] == replay.Origin {
			icp.Messages += 2 * siblings
			icp.MessageBytes += siblings * icpBytes(len(c.base+r.Key))
		}
		if p := (pair{peers[i], r.Key}); !seen[p] {
			seen[p] = true
			alone.OriginFetches += fetches(o.Trace.Sizes[r.Key])
			alone.OriginBytes += o.Trace.Sizes[r.Key]
		}
	}
	floor := Alternative{Name: "floor", OriginBytes: o.Trace.Bytes()}
	for _, size := range o.Trace.Sizes {
		floor.OriginFetches += fetches(size)
	}
	return []Alternative{ours, icp, alone, floor}
}
