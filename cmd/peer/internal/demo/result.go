package demo

import (
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/cmd/peer/internal/replay"
	"github.com/summarycache/summarycache/gossip/exchange"
)

// Result is the outcome of a demo. Bytes of messages are payload, without the
// headers of TLS, TCP, UDP and IP.
type Result struct {
	Workload Workload      `json:"workload"`
	Seconds  float64       `json:"seconds"` // that the requests took
	Peers    []Row         `json:"peers"`
	Total    Row           `json:"total"`
	Compare  []Alternative `json:"comparison"` // "summarycache", "icp", "none", "floor"
	// OverFloor is the relative excess of origin fetches over one for each
	// object. FalseShare is the share of false hits in the requests to siblings.
	OverFloor  float64 `json:"origin_fetches_over_floor"`
	FalseShare float64 `json:"false_hits_per_sibling_request"`
	Wait       float64 `json:"publish_wait_seconds"`    // the longest that a change waits for others before it is published
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
	Requests int     `json:"requests"`
	Objects  int     `json:"objects"` // distinct ones requested
	Bytes    int64   `json:"bytes"`   // of all objects once
	Clients  int     `json:"clients"` // 0 = unknown, requests were assigned at random
	Rate     float64 `json:"rate"`    // requests a second; 0 = unbounded
	Seed     uint64  `json:"seed"`
}

// Row is what one peer did.
type Row struct {
	Name            string `json:"name"`
	Requests        int64  `json:"requests"`
	LocalHits       int64  `json:"local_hits"`
	SiblingHits     int64  `json:"sibling_hits"`
	Collapsed       int64  `json:"collapsed"` // answered by the fetch of another request
	OriginFetches   int64  `json:"origin_fetches"`
	SiblingRequests int64  `json:"sibling_requests"` // including those to peers with a fetch of the object in progress
	FalseHits       int64  `json:"false_hits"`
	SiblingErrors   int64  `json:"sibling_errors"`
	Hedges          int64  `json:"hedges"`    // requests to another source, because a sibling was late
	Overtaken       int64  `json:"overtaken"` // origin fetches started because a sibling was late, where the sibling then answered first
	// Missed counts origin fetches of objects that a sibling's store held when the
	// origin was asked.
	Missed            int64 `json:"missed_opportunities"`
	BytesSent         int64 `json:"digest_bytes_sent"`
	BytesReceived     int64 `json:"digest_bytes_received"`
	SnapshotsSent     int64 `json:"snapshots_sent"`
	SnapshotsReceived int64 `json:"snapshots_received"`
	DeltasSent        int64 `json:"deltas_sent"`
	DeltasReceived    int64 `json:"deltas_received"`
	AdvertsSent       int64 `json:"adverts_sent"`
}

// Alternative is what the same requests cost, or would have cost.
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

// counts are all that rows add up.
func (r *Row) counts() []*int64 {
	return []*int64{&r.Requests, &r.LocalHits, &r.SiblingHits, &r.Collapsed, &r.OriginFetches, &r.SiblingRequests, &r.FalseHits,
		&r.SiblingErrors, &r.Hedges, &r.Overtaken, &r.Missed, &r.BytesSent, &r.BytesReceived, &r.SnapshotsSent, &r.SnapshotsReceived,
		&r.DeltasSent, &r.DeltasReceived, &r.AdvertsSent}
}

func (r *Row) add(o Row) {
	more := o.counts()
	for i, n := range r.counts() {
		*n += *more[i]
	}
}

func (c *cluster) result(o Options, seen *replay.Result) *Result {
	r := &Result{
		Workload: Workload{
			Name: o.Trace.Name, Requests: len(o.Trace.Requests), Objects: len(o.Trace.Sizes), Bytes: o.Trace.Bytes(),
			Clients: o.Trace.Clients(), Rate: o.Rate, Seed: o.Seed,
		},
		Wait:    wait(o).Seconds(),
		Seconds: seen.Seconds, Total: Row{Name: "total"}, Checked: seen.Total.Bytes, Errors: seen.Total.Failed, FirstError: seen.FirstError,
	}
	var statuses []admin.Status
	for i, n := range c.nodes {
		s := n.Status()
		statuses = append(statuses, s)
		row := c.row(i, s, seen.Peers[i].Counts)
		r.Peers = append(r.Peers, row)
		r.Total.add(row)
		r.LagMean += s.Exchange.LagMean / float64(len(c.nodes))
		r.LagMax = max(r.LagMax, s.Exchange.LagMax)
		r.Membership += s.Exchange.MembershipBytesSent
	}
	tally := c.origin.Tally()
	r.OriginSeen = tally.Requests
	r.Compare = c.compare(o, statuses, seen.Ways)
	if r.Workload.Objects > 0 {
		r.OverFloor = float64(r.Total.OriginFetches)/float64(r.Workload.Objects) - 1
	}
	if r.Total.SiblingRequests > 0 {
		r.FalseShare = float64(r.Total.FalseHits) / float64(r.Total.SiblingRequests)
	}
	return r
}

// wait is the longest time that a change waits.
func wait(o Options) time.Duration {
	return exchange.Publishing{Interval: o.Publish}.For(o.Peers - 1).Interval
}

func (c *cluster) row(i int, s admin.Status, seen replay.Counts) Row {
	t, x := s.Traffic, s.Exchange
	return Row{
		Name: s.Name, Requests: seen.Requests, LocalHits: seen.Local,
		SiblingHits: seen.Sibling, Collapsed: seen.Shared, OriginFetches: int64(t.OriginRequests),
		SiblingRequests: int64(t.SiblingRequests + t.FetchersFound), FalseHits: int64(t.FalseHits), SiblingErrors: int64(t.SiblingErrors), Overtaken: int64(t.OriginsOutrun),
		Hedges: int64(t.Hedges), Missed: c.counters[i].missed.Load(),
		BytesSent: x.BytesSent(), BytesReceived: x.BytesReceived(),
		SnapshotsSent: x.SnapshotsSent, SnapshotsReceived: x.SnapshotsReceived, DeltasSent: x.DeltasSent, DeltasReceived: x.DeltasReceived,
		AdvertsSent: x.AdvertsSent,
	}
}

// lookupBytes is about the size of a lookup of a fetch in progress at the key's owner, with
// the answer.
const lookupBytes = 160

// compare computes what other ways of cooperating would have cost.
//
// With ICP every miss queries all siblings and waits for their answers, so the
// origin is asked only for objects that no sibling holds: our fetches without the
// missed ones. Without cooperation each peer fetches each requested object once. The
// stores of the demo evict nothing.
func (c *cluster) compare(o Options, statuses []admin.Status, ways []replay.Way) []Alternative {
	ours := Alternative{Name: "summarycache", OriginBytes: c.origin.Tally().Bytes}
	icp := Alternative{Name: "icp", OriginBytes: ours.OriginBytes}
	siblings := int64(len(c.nodes) - 1)
	for i, s := range statuses {
		x := s.Exchange
		ours.OriginFetches += int64(s.Traffic.OriginRequests)
		ours.Messages += x.AdvertsSent + 2*(x.SnapshotsReceived+x.DeltasReceived-x.CarriedReceived) + 2*x.Syncs // a body is requested unless an advert carries it, and a sync is answered
		ours.Messages += 2 * int64(s.Traffic.LookupsSent)
		ours.MessageBytes += x.BytesReceived() + x.MembershipBytesReceived + lookupBytes*int64(s.Traffic.LookupsSent)
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
			alone.OriginFetches++
			alone.OriginBytes += o.Trace.Sizes[r.Key]
		}
	}
	floor := Alternative{Name: "floor", OriginFetches: int64(len(o.Trace.Sizes)), OriginBytes: o.Trace.Bytes()}
	return []Alternative{ours, icp, alone, floor}
}
