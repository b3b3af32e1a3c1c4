package admin

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/summarycache/summarycache/cmd/peer/internal/proxy"
)

// A family is one metric and how its samples follow from a status.
type family struct {
	name, help string
	kind       prometheus.ValueType
	label      string // "" = one sample without a label
	samples    func(s Status, emit func(value float64, label ...string))
}

func counter(name, help string, value func(Status) float64) family {
	return family{name, help, prometheus.CounterValue, "", single(value)}
}

func gauge(name, help string, value func(Status) float64) family {
	return family{name, help, prometheus.GaugeValue, "", single(value)}
}

func single(value func(Status) float64) func(Status, func(float64, ...string)) {
	return func(s Status, emit func(float64, ...string)) { emit(value(s)) }
}

func byLabel(kind prometheus.ValueType, label, name, help string, samples func(Status, func(float64, ...string))) family {
	return family{name, help, kind, label, samples}
}

func perMember(kind prometheus.ValueType, name, help string, value func(Member) float64) family {
	return byLabel(kind, "member", name, help, func(s Status, emit func(float64, ...string)) {
		for _, m := range s.Members {
			emit(value(m), m.Name)
		}
	})
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// families are the metrics of a peer. Their names are an interface: METRICS.md
// lists them, and a test compares the two.
var families = []family{
	gauge("peer_ready", "1 if the peer is ready for traffic.", func(s Status) float64 { return truth(s.Ready) }),
	byLabel(prometheus.GaugeValue, "part", "peer_part_hangs", "1 if the part had work for 10 s and made no progress. /healthz then fails.",
		func(s Status, emit func(float64, ...string)) {
			for _, p := range s.Health.Parts {
				emit(truth(p.Hangs), p.Name)
			}
		}),
	byLabel(prometheus.GaugeValue, "part", "peer_degraded", "1 if the part does not hang but something goes wrong with it. /healthz names it and answers 200.",
		func(s Status, emit func(float64, ...string)) {
			for _, part := range degradable {
				bad := slices.ContainsFunc(s.Health.Degraded, func(t Trouble) bool { return t.Part == part })
				emit(truth(bad), part)
			}
		}),
	gauge("peer_start_time_seconds", "Start time of the peer, Unix time.", func(s Status) float64 { return float64(s.Started.UnixMilli()) / 1000 }),
	byLabel(prometheus.GaugeValue, "", "peer_certificate_end_time_seconds", "Expiry of the peer's certificate for TLS with siblings, Unix time. Absent without TLS.",
		func(s Status, emit func(float64, ...string)) {
			if !s.CertificateUntil.IsZero() {
				emit(float64(s.CertificateUntil.Unix()))
			}
		}),
	byLabel(prometheus.GaugeValue, "version", "peer_build_info", "Always 1. The label is the build.",
		func(s Status, emit func(float64, ...string)) { emit(1, s.Version) }),

	byLabel(prometheus.CounterValue, "outcome", "peer_requests_total", "Requests of clients, by outcome: local-hit, revalidated (stale, and confirmed by the origin), sibling-hit, origin-fetch, bypass (POST, tunnels, PURGE, what a rule passes by), collapsed (shared the fetch of another request), not-cached (only-if-cached without a fresh copy), client-error, gateway-error, client-gone (before its answer began).",
		func(s Status, emit func(float64, ...string)) {
			t := s.Traffic
			emit(float64(t.LocalHits), "local-hit")
			emit(float64(t.Revalidations), "revalidated")
			emit(float64(t.SiblingHits), "sibling-hit")
			emit(float64(t.OriginFetches), "origin-fetch")
			emit(float64(t.Bypassed), "bypass")
			emit(float64(t.Collapsed), "collapsed")
			emit(float64(t.NotCached), "not-cached")
			emit(float64(t.ClientErrors), "client-error")
			emit(float64(t.GatewayErrors), "gateway-error")
			emit(float64(t.ClientsGone), "client-gone")
		}),
	gauge("peer_connections", "Open connections of clients and siblings.", func(s Status) float64 { return float64(s.Clients.Open) }),
	counter("peer_connections_dropped_total", "Idle connections closed to make room for new ones.", func(s Status) float64 { return float64(s.Clients.Dropped) }),
	counter("peer_connections_refused_total", "New connections closed, and requests by HTTP/2 refused, because no connection could make room.", func(s Status) float64 { return float64(s.Clients.Refused) }),
	counter("peer_broken_bodies_total", "Answers cut short after they began.", func(s Status) float64 { return float64(s.Traffic.BrokenBodies) }),
	counter("peer_bodies_resumed_total", "Bodies that broke off and were finished by another source.", func(s Status) float64 { return float64(s.Traffic.BodiesResumed) }),
	counter("peer_bodies_taken_over_total", "Bodies that stood still and were continued by another source.", func(s Status) float64 { return float64(s.Traffic.BodiesTakenOver) }),
	counter("peer_bodies_cut_total", "Bodies that no source could finish while a client waited.", func(s Status) float64 { return float64(s.Traffic.BodiesCut) }),
	counter("peer_stale_served_total", "Answers served stale.", func(s Status) float64 { return float64(s.Traffic.StaleServed) }),
	counter("peer_origin_requests_total", "Requests sent to origins, validations included.", func(s Status) float64 { return float64(s.Traffic.OriginRequests) }),
	counter("peer_origin_errors_total", "Requests to origins that got no answer.", func(s Status) float64 { return float64(s.Traffic.OriginErrors) }),
	gauge("peer_origins_failing", "Origins whose last request got no answer.", func(s Status) float64 { return float64(len(s.Origins)) }),
	byLabel(prometheus.CounterValue, "result", "peer_sibling_requests_total", "Requests to siblings, by result: hit, false-hit (the sibling did not have the object), failed, outrun (another source answered first), unused (the client left, or the answer was of no use).",
		func(s Status, emit func(float64, ...string)) {
			t := s.Traffic
			emit(float64(t.SiblingsUseful), "hit")
			emit(float64(t.SiblingRequests-min(t.SiblingRequests, t.SiblingsUseful+t.FalseHits+t.SiblingErrors+t.SiblingsOutrun)), "unused")
			emit(float64(t.FalseHits), "false-hit")
			emit(float64(t.SiblingErrors), "failed")
			emit(float64(t.SiblingsOutrun), "outrun")
		}),
	gauge("peer_sibling_deadline_seconds", "Current deadline for the first byte of a sibling's answer. It adapts to recent answers.", func(s Status) float64 { return s.Siblings.Deadline }),
	gauge("peer_sibling_lost_ratio", "Share of the requests to siblings in the last 30 s that got no answer in time.", func(s Status) float64 { return s.Siblings.Lost }),
	counter("peer_sibling_excused_total", "Failed requests that did not count against the sibling, since this process or most siblings were late.", func(s Status) float64 { return float64(s.Traffic.SiblingsExcused) }),
	counter("peer_sibling_spared_total", "Requests to siblings that were not sent because too many got no answer.", func(s Status) float64 { return float64(s.Traffic.SiblingsSpared) }),
	byLabel(prometheus.CounterValue, "result", "peer_sibling_compared_total", "Siblings' answers compared with the origin's, by result: same, other.",
		func(s Status, emit func(float64, ...string)) {
			emit(float64(s.Traffic.SiblingsCompared-min(s.Traffic.SiblingsCompared, s.Traffic.SiblingsRefuted)), "same")
			emit(float64(s.Traffic.SiblingsRefuted), "other")
		}),
	counter("peer_sibling_accused_total", "Quarantines of siblings for a corrupt or forged body.", func(s Status) float64 { return float64(s.Traffic.SiblingsAccused) }),
	gauge("peer_late_seconds", "Delay of this process for lack of processor time.", func(s Status) float64 { return s.Late }),
	byLabel(prometheus.CounterValue, "result", "peer_sibling_hedges_total", "Hedged requests to a second sibling, by result: won (answered first), lost, denied (the budget was spent).",
		func(s Status, emit func(float64, ...string)) {
			t := s.Traffic
			emit(float64(t.HedgesWon), "won")
			emit(float64(t.Hedges-min(t.Hedges, t.HedgesWon)), "lost")
			emit(float64(t.HedgesDenied), "denied")
		}),
	byLabel(prometheus.CounterValue, "result", "peer_collapse_total", "Misses that asked the key's owner which peer is fetching the object, by result: nobody, shared (that peer delivered it), late (it did not within 2 s).",
		func(s Status, emit func(float64, ...string)) {
			t := s.Traffic
			emit(float64(t.HomesAsked-min(t.HomesAsked, t.FetchersFound)), "nobody")
			emit(float64(t.FetchersShared), "shared")
			emit(float64(t.FetchersFound-min(t.FetchersFound, t.FetchersShared)), "late")
		}),
	byLabel(prometheus.CounterValue, "result", "peer_sibling_answers_total", "Requests of siblings, by answer: hit, miss, refused (not from the sibling that it names).",
		func(s Status, emit func(float64, ...string)) {
			emit(float64(s.Traffic.ServedToSiblings), "hit")
			emit(float64(s.Traffic.NotServedToSiblings), "miss")
			emit(float64(s.Traffic.RefusedAskers), "refused")
		}),
	byLabel(prometheus.CounterValue, "way", "peer_body_bytes_total", "Bytes of bodies: to-clients, to-siblings, from-origins, from-siblings.",
		func(s Status, emit func(float64, ...string)) {
			t := s.Traffic
			emit(float64(t.BytesToClients), "to-clients")
			emit(float64(t.BytesToSiblings), "to-siblings")
			emit(float64(t.BytesFromOrigins), "from-origins")
			emit(float64(t.BytesFromSiblings), "from-siblings")
		}),

	gauge("peer_store_objects", "Objects in the store.", func(s Status) float64 { return float64(s.Store.Objects) }),
	gauge("peer_store_bytes", "Bytes on disk of these objects.", func(s Status) float64 { return float64(s.Store.Bytes) }),
	gauge("peer_store_garbage_bytes", "Bytes on disk that objects left behind in files that they shared, until these are turned over.", func(s Status) float64 { return float64(s.Store.GarbageBytes) }),
	gauge("peer_store_max_bytes", "Bytes that the store may use.", func(s Status) float64 { return float64(s.Store.MaxBytes) }),
	gauge("peer_store_memory_bytes", "Bytes of hot objects kept in memory.", func(s Status) float64 { return float64(s.Store.MemoryBytes) }),
	counter("peer_store_inserts_total", "Objects stored.", func(s Status) float64 { return float64(s.Store.Inserts) }),
	counter("peer_store_evictions_total", "Objects evicted to make room.", func(s Status) float64 { return float64(s.Store.Evictions) }),
	counter("peer_store_corrupt_total", "Objects found corrupt when read, and removed.", func(s Status) float64 { return float64(s.Store.Corrupt) }),
	counter("peer_store_scrubbed_bytes_total", "Bytes read in the background to find errors of the disk.", func(s Status) float64 { return float64(s.Store.ScrubbedBytes) }),
	counter("peer_store_scrub_passes_total", "Complete passes of that over the store.", func(s Status) float64 { return float64(s.Store.ScrubPasses) }),
	counter("peer_store_write_errors_total", "Objects not stored because of an error of the file system.", func(s Status) float64 { return float64(s.Store.WriteErrors) }),

	gauge("peer_digest_keys", "Keys in this peer's digest: one per object, and a second one for some that vary.", func(s Status) float64 { return float64(s.Digest.Keys) }),
	gauge("peer_digest_planned_keys", "Number of objects that the digest is planned for.", func(s Status) float64 { return float64(s.Digest.Planned) }),
	counter("peer_digest_replans_total", "Times that the digest was planned anew because the peer held more objects than planned.", func(s Status) float64 { return float64(s.Digest.Replans) }),
	gauge("peer_digest_false_positive_ratio", "Expected share of absent objects that this peer's digest claims.", func(s Status) float64 { return s.Digest.FalsePositiveRate }),
	counter("peer_digest_versions_total", "Published versions of the digest.", func(s Status) float64 { return float64(s.Exchange.Published) }),
	byLabel(prometheus.CounterValue, "kind", "peer_digest_sent_total", "Messages about digests sent, by kind: snapshot, delta, advert, squid (digests fetched by Squids).",
		func(s Status, emit func(float64, ...string)) {
			emit(float64(s.Exchange.SnapshotsSent), "snapshot")
			emit(float64(s.Exchange.DeltasSent), "delta")
			emit(float64(s.Exchange.AdvertsSent), "advert")
			emit(float64(s.Exchange.SquidSent), "squid")
		}),
	byLabel(prometheus.CounterValue, "kind", "peer_digest_sent_bytes_total", "Bytes of these messages. Kind vector is the comparison of all versions with a random peer; kind request includes answers without a digest.",
		func(s Status, emit func(float64, ...string)) {
			emit(float64(s.Exchange.SnapshotBytesSent), "snapshot")
			emit(float64(s.Exchange.DeltaBytesSent), "delta")
			emit(float64(s.Exchange.AdvertBytesSent), "advert")
			emit(float64(s.Exchange.VectorBytesSent), "vector")
			emit(float64(s.Exchange.RequestBytesSent), "request")
			emit(float64(s.Exchange.SquidBytesSent), "squid")
		}),
	byLabel(prometheus.CounterValue, "kind", "peer_digest_received_total", "Messages about digests received, by kind.",
		func(s Status, emit func(float64, ...string)) {
			emit(float64(s.Exchange.SnapshotsHeard), "snapshot")
			emit(float64(s.Exchange.DeltasHeard), "delta")
			emit(float64(s.Exchange.AdvertsHeard), "advert")
		}),
	byLabel(prometheus.CounterValue, "kind", "peer_digest_received_bytes_total", "Bytes of these messages, by kind as above.",
		func(s Status, emit func(float64, ...string)) {
			emit(float64(s.Exchange.SnapshotBytesHeard), "snapshot")
			emit(float64(s.Exchange.DeltaBytesHeard), "delta")
			emit(float64(s.Exchange.AdvertBytesHeard), "advert")
			emit(float64(s.Exchange.VectorBytesHeard), "vector")
			emit(float64(s.Exchange.RequestBytesHeard), "request")
		}),
	byLabel(prometheus.CounterValue, "way", "peer_membership_bytes_total", "Bytes of failure detection and member lists: sent, received.",
		func(s Status, emit func(float64, ...string)) {
			emit(float64(s.Exchange.MembershipBytesSent), "sent")
			emit(float64(s.Exchange.MembershipBytesHeard), "received")
		}),
	byLabel(prometheus.CounterValue, "way", "peer_sealing_bytes_total", "Bytes that encryption adds to digests and membership, handshakes included: sent, received.",
		func(s Status, emit func(float64, ...string)) {
			emit(float64(s.Exchange.SealingBytesSent), "sent")
			emit(float64(s.Exchange.SealingBytesHeard), "received")
		}),
	counter("peer_digest_repairs_total", "Versions found by comparison with another peer because their adverts were lost.", func(s Status) float64 { return float64(s.Exchange.Repairs) }),
	counter("peer_digest_divergences_total", "Replicas that differed from what their peer published, and were fetched again.", func(s Status) float64 { return float64(s.Exchange.Divergences) }),
	counter("peer_digest_rejected_total", "Digests and deltas rejected as invalid.", func(s Status) float64 { return float64(s.Exchange.Rejected) }),
	counter("peer_digest_resumed_bytes_total", "Bytes of snapshots that did not have to be sent again after a stream broke.", func(s Status) float64 { return float64(s.Exchange.ResumedBytes) }),
	gauge("peer_digest_replica_bytes", "Memory for the digests of the other members, bytes.", func(s Status) float64 { return float64(s.Exchange.ReplicaBytes) }),
	gauge("peer_digest_index_bytes", "Memory for the index over them, which lookups use, bytes.", func(s Status) float64 { return float64(s.Exchange.IndexBytes) }),

	byLabel(prometheus.GaugeValue, "member", "peer_member_up", "1 if the member is alive, 0 if it is dead. Absent once it has left.",
		func(s Status, emit func(float64, ...string)) {
			for _, m := range s.Members {
				if m.State != "left" {
					emit(truth(m.Here()), m.Name)
				}
			}
		}),
	perMember(prometheus.GaugeValue, "peer_member_digest_current", "1 if the replica of the member's digest is the newest known version.", func(m Member) float64 { return truth(m.Current) }),
	perMember(prometheus.GaugeValue, "peer_member_digest_age_seconds", "Time since the replica of the member's digest was last known to be current.", func(m Member) float64 { return m.Age }),
	perMember(prometheus.GaugeValue, "peer_member_digest_keys", "Objects in the member's digest.", func(m Member) float64 { return float64(m.Keys) }),
	perMember(prometheus.CounterValue, "peer_member_hits_total", "Requests that the member answered with the object.", func(m Member) float64 { return float64(m.Hits) }),
	perMember(prometheus.GaugeValue, "peer_member_round_trip_seconds", "Recent time from a request to the member until its answer; 0 if it never answered.", func(m Member) float64 { return m.RoundTrip }),
	perMember(prometheus.CounterValue, "peer_member_false_hits_total", "Requests for objects that the member did not have.", func(m Member) float64 { return float64(m.FalseHits) }),
	perMember(prometheus.CounterValue, "peer_member_failures_total", "Requests that the member did not answer.", func(m Member) float64 { return float64(m.Failures) }),
}

// collector makes metrics of a status at the time they are asked for, so that
// every figure of one answer is of one moment.
type collector struct {
	status func() Status
	descs  []*prometheus.Desc
}

func newCollector(status func() Status) *collector {
	c := &collector{status: status}
	for _, f := range families {
		var labels []string
		if f.label != "" {
			labels = []string{f.label}
		}
		c.descs = append(c.descs, prometheus.NewDesc(f.name, f.help, labels, nil))
	}
	return c
}

func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		out <- d
	}
}

func (c *collector) Collect(out chan<- prometheus.Metric) {
	s := c.status()
	for i, f := range families {
		f.samples(s, func(value float64, label ...string) {
			out <- prometheus.MustNewConstMetric(c.descs[i], f.kind, value, label...)
		})
	}
}

// Durations measures how long requests take. It is safe for concurrent use.
type Durations struct {
	histogram *prometheus.HistogramVec
	outcomes  [proxy.Outcomes]prometheus.Observer // by proxy.Outcome
}

// NewDurations returns an empty one.
func NewDurations() *Durations {
	d := &Durations{histogram: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "peer_request_duration_seconds",
		Help:    "Time from a request's arrival to the end of its answer, by outcome as in peer_requests_total.",
		Buckets: prometheus.ExponentialBuckets(0.00025, 4, 10),
	}, []string{"outcome"})}
	for i := range d.outcomes {
		if i > 0 { // every request has an outcome
			d.outcomes[i] = d.histogram.WithLabelValues(proxy.Outcome(i).String())
		}
	}
	return d
}

// Observe counts one finished request.
func (d *Durations) Observe(e proxy.Event) {
	d.outcomes[e.Outcome].Observe(e.Duration.Seconds())
}

// registry holds everything that /metrics shows.
func registry(status func() Status, durations *Durations) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(newCollector(status), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if durations != nil {
		r.MustRegister(durations.histogram)
	}
	return r
}
