package admin

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/summarycache/summarycache/cmd/peer/internal/proxy"
	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"

	"github.com/summarycache/summarycache/gossip/httpcache/budget"
)

// values are the samples of a metric by the value of its label; "" if it has no label.
type values map[string]float64

// A family is one metric, with a function that computes its samples from a status. It is a counter
// if its name ends in _total, otherwise a gauge.
type family struct {
	name, label, help string
	values            func(Status) values
}

func (f *family) counts() bool { return strings.HasSuffix(f.name, "_total") }

type number interface{ int | int64 | uint64 | float64 }

func one[N number](n N) values { return values{"": float64(n)} }

func each[N number](by map[string]N) values {
	v := make(values, len(by))
	for label, n := range by {
		v[label] = float64(n)
	}
	return v
}

// ofDigests returns the bytes that keep digests up to date, by kind.
func ofDigests(t gossip.Traffic) values {
	return each(map[string]int64{"advert": t.Adverts, "delta": t.Deltas, "snapshot": t.Snapshots, "request": t.Requests,
		"vector": t.Vectors, "greeting": t.Greetings})
}

func bothWays(of func(gossip.Traffic) int64) func(Status) values {
	return func(s Status) values {
		return values{"sent": float64(of(s.Exchange.Sent)), "received": float64(of(s.Exchange.Received))}
	}
}

func perAccount(value func(budget.Usage) int64) func(Status) values {
	return func(s Status) values {
		v := make(values, len(s.Memory.Accounts))
		for _, a := range s.Memory.Accounts {
			v[a.Name] = float64(value(a))
		}
		return v
	}
}

func perMember[N number](value func(Member) N) func(Status) values {
	return func(s Status) values {
		v := make(values, len(s.Members))
		for _, m := range s.Members {
			v[m.Name] = float64(value(m))
		}
		return v
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// less subtracts from a counter those that count parts of it. Counters are read one after
// another, so the parts may exceed it for a moment; then the result is 0.
func less(n, parts uint64) uint64 { return n - min(n, parts) }

// families are the metrics of a peer. Their names are an interface: METRICS.md
// lists them, and a test compares the two.
var families = []family{
	{"peer_ready", "", "1 if the peer is ready for traffic.", func(s Status) values { return one(truth(s.Ready)) }},
	{"peer_part_hangs", "part", "1 if the part had work for 10 s and made no progress. /healthz then fails.", func(s Status) values {
		v := values{}
		for _, p := range s.Health.Parts {
			v[p.Name] = truth(p.Hangs)
		}
		return v
	}},
	{"peer_degraded", "part", "1 if the part does not hang but something goes wrong with it. /healthz names it and answers 200.", func(s Status) values {
		v := values{}
		for _, part := range degradable {
			v[part] = truth(slices.ContainsFunc(s.Health.Degraded, func(t Trouble) bool { return t.Part == part }))
		}
		return v
	}},
	{"peer_start_time_seconds", "", "Start time of the peer, Unix time.", func(s Status) values { return one(float64(s.Started.UnixMilli()) / 1000) }},
	{"peer_config_last_reload_successful", "", "0 if the last attempt to reload the configuration was refused, 1 otherwise.", func(s Status) values { return one(truth(s.Config.Error == "")) }},
	{"peer_config_last_reload_success_timestamp_seconds", "", "When the configuration that is in effect was read, Unix time.", func(s Status) values { return one(float64(s.Config.Good.UnixMilli()) / 1000) }},
	{"peer_certificate_end_time_seconds", "", "Expiry of the peer's certificate for TLS with siblings, Unix time. Absent without TLS.", func(s Status) values {
		if s.CertificateUntil.IsZero() {
			return nil
		}
		return one(s.CertificateUntil.Unix())
	}},
	{"peer_build_info", "version", "Always 1. The label is the build.", func(s Status) values { return values{s.Version: 1} }},

	{"peer_requests_total", "outcome", "Requests of clients, by outcome: local-hit, revalidated (stale, and confirmed by the origin), sibling-hit, origin-fetch, bypass (POST, tunnels, PURGE, requests that a rule excludes), collapsed (shared the fetch of another request), not-cached (only-if-cached without a fresh copy), client-error, gateway-error, client-gone (before its answer began).", func(s Status) values {
		t := s.Traffic
		return each(map[string]uint64{
			"local-hit": t.LocalHits, "revalidated": t.Revalidations, "sibling-hit": t.SiblingHits,
			"origin-fetch": t.OriginFetches, "bypass": t.Bypassed, "collapsed": t.Collapsed,
			"not-cached": t.NotCached, "client-error": t.ClientErrors, "gateway-error": t.GatewayErrors,
			"client-gone": t.ClientsGone,
		})
	}},
	{"peer_not_stored_total", "reason", "Whole answers of origins to GET that were not stored, by reason: status (an error, or another status without a lifetime), request-no-store, no-store, private, authorization, vary (by *), set-cookie, expired (no time left and no validator), no-lifetime (none stated, and no validator).", func(s Status) values {
		return each(s.Traffic.NotStored)
	}},
	{"peer_connections", "", "Open connections of clients and siblings.", func(s Status) values { return one(s.Clients.Open) }},
	{"peer_connections_dropped_total", "", "Idle connections closed, and stalled requests cut, to make room for new ones.", func(s Status) values { return one(s.Clients.Dropped) }},
	{"peer_connections_refused_total", "", "New connections closed, and requests refused, because none could make room.", func(s Status) values { return one(s.Clients.Refused) }},
	{"peer_memory_limit_bytes", "", "Memory that the process may take, bytes.", func(s Status) values { return one(s.Memory.Limit) }},
	{"peer_memory_budget_bytes", "", "Memory that all accounts may hold, bytes; the rest of the limit is for the program and garbage.", func(s Status) values { return one(s.Memory.Budget) }},
	{"peer_memory_held_bytes", "account", "Memory that each account holds, bytes: OPERATING.md lists them.", perAccount(func(u budget.Usage) int64 { return u.Held })},
	{"peer_memory_refused_total", "account", "How often an account was refused more memory, by account: a request, connection, digest or object was refused, or made room for another.", perAccount(func(u budget.Usage) int64 { return u.Refused })},
	{"peer_broken_bodies_total", "", "Answers cut short after they began.", func(s Status) values { return one(s.Traffic.BrokenBodies) }},
	{"peer_bodies_resumed_total", "", "Bodies that broke off and were finished by another source.", func(s Status) values { return one(s.Traffic.BodiesResumed) }},
	{"peer_bodies_taken_over_total", "", "Bodies that stalled or were too slow, and were continued by another source.", func(s Status) values { return one(s.Traffic.BodiesTakenOver) }},
	{"peer_bodies_cut_total", "", "Bodies that no source could finish while a client waited.", func(s Status) values { return one(s.Traffic.BodiesCut) }},
	{"peer_stale_served_total", "", "Answers served stale.", func(s Status) values { return one(s.Traffic.StaleServed) }},
	{"peer_origin_requests_total", "", "Requests sent to origins, validations included.", func(s Status) values { return one(s.Traffic.OriginRequests) }},
	{"peer_origin_errors_total", "", "Requests to origins that got no answer.", func(s Status) values { return one(s.Traffic.OriginErrors) }},
	{"peer_origins_failing", "", "Origins whose last request got no answer.", func(s Status) values { return one(len(s.Origins)) }},
	{"peer_sibling_requests_total", "result", "Requests to siblings, by result: hit, false-hit (the sibling did not have the object), failed, outrun (another source answered first), unused (the client left, or the answer was of no use).", func(s Status) values {
		t := s.Traffic
		return each(map[string]uint64{
			"hit":       t.SiblingsUseful,
			"unused":    less(t.SiblingRequests, t.SiblingsUseful+t.FalseHits+t.SiblingErrors+t.SiblingsOutrun),
			"false-hit": t.FalseHits, "failed": t.SiblingErrors, "outrun": t.SiblingsOutrun,
		})
	}},
	{"peer_sibling_deadline_seconds", "", "Current deadline for the first byte of a sibling's answer. It adapts to recent answers.", func(s Status) values { return one(s.Siblings.Deadline) }},
	{"peer_sibling_lost_ratio", "", "Share of the requests to siblings in the last 30 s that got no answer in time.", func(s Status) values { return one(s.Siblings.Lost) }},
	{"peer_sibling_excused_total", "", "Failed requests to siblings that did not count against the sibling, since this process or most siblings were late.", func(s Status) values { return one(s.Traffic.SiblingsExcused) }},
	{"peer_sibling_spared_total", "", "Requests to siblings that were not sent because too many got no answer.", func(s Status) values { return one(s.Traffic.SiblingsSpared) }},
	{"peer_sibling_compared_total", "result", "Siblings' answers compared with the origin's, by result: same, other.", func(s Status) values {
		t := s.Traffic
		return each(map[string]uint64{"same": less(t.SiblingsCompared, t.SiblingsRefuted), "other": t.SiblingsRefuted})
	}},
	{"peer_sibling_accused_total", "", "Quarantines of siblings for a corrupt or forged body.", func(s Status) values { return one(s.Traffic.SiblingsAccused) }},
	{"peer_late_seconds", "", "Delay of this process for lack of processor time.", func(s Status) values { return one(s.Late) }},
	{"peer_sibling_hedges_total", "result", "Hedged requests to a second sibling, by result: won (answered first), lost, denied (the budget was spent).", func(s Status) values {
		t := s.Traffic
		return each(map[string]uint64{"won": t.HedgesWon, "lost": less(t.Hedges, t.HedgesWon), "denied": t.HedgesDenied})
	}},
	{"peer_collapse_total", "result", "Misses that asked the key's owner which peer is fetching the object or has just fetched it, by result: nobody, shared (that peer delivered it), late (it did not, or not in time).", func(s Status) values {
		t := s.Traffic
		return each(map[string]uint64{
			"nobody": less(t.OwnersAsked, t.FetchersFound), "shared": t.FetchersShared,
			"late": less(t.FetchersFound, t.FetchersShared),
		})
	}},
	{"peer_sibling_answers_total", "result", "Requests of siblings, by answer: hit, miss, refused (not from the sibling that it names).", func(s Status) values {
		t := s.Traffic
		return each(map[string]uint64{"hit": t.ServedToSiblings, "miss": t.NotServedToSiblings, "refused": t.RefusedAskers})
	}},
	{"peer_body_bytes_total", "way", "Bytes of bodies: to-clients, to-siblings, from-origins, from-siblings.", func(s Status) values {
		t := s.Traffic
		return each(map[string]uint64{
			"to-clients": t.BytesToClients, "to-siblings": t.BytesToSiblings, "from-origins": t.BytesFromOrigins,
			"from-siblings": t.BytesFromSiblings,
		})
	}},

	{"peer_zone_body_bytes_total", "zone", "Bytes of bodies that siblings of each zone sent to this peer. Absent without --zone at these.", func(s Status) values {
		return each(s.Siblings.ZoneBytes)
	}},

	{"peer_store_objects", "", "Objects in the store.", func(s Status) values { return one(s.Store.Objects) }},
	{"peer_store_bytes", "", "Bytes on disk of the objects in the store.", func(s Status) values { return one(s.Store.Bytes) }},
	{"peer_store_garbage_bytes", "", "Bytes on disk of removed objects, in files that they share with others, until these files are rewritten.", func(s Status) values { return one(s.Store.GarbageBytes) }},
	{"peer_store_max_bytes", "", "Bytes that the store may use.", func(s Status) values { return one(s.Store.MaxBytes) }},
	{"peer_store_room_bytes", "", "Bytes that the store may use at present: fewer than peer_store_max_bytes if the disk has less room.", func(s Status) values { return one(s.Store.RoomBytes) }},
	{"peer_store_memory_bytes", "", "Bytes of hot objects kept in memory.", func(s Status) values { return one(s.Store.MemoryBytes) }},
	{"peer_store_inserts_total", "", "Objects stored.", func(s Status) values { return one(s.Store.Inserts) }},
	{"peer_store_evictions_total", "", "Objects evicted to make room.", func(s Status) values { return one(s.Store.Evictions) }},
	{"peer_store_corrupt_total", "", "Objects found corrupt when read, and removed.", func(s Status) values { return one(s.Store.Corrupt) }},
	{"peer_store_scrubbed_bytes_total", "", "Bytes read in the background to find disk errors.", func(s Status) values { return one(s.Store.ScrubbedBytes) }},
	{"peer_store_scrub_passes_total", "", "Complete background reads of the store.", func(s Status) values { return one(s.Store.ScrubPasses) }},
	{"peer_store_write_errors_total", "", "Objects not stored because of an error of the file system.", func(s Status) values { return one(s.Store.WriteErrors) }},

	{"peer_digest_keys", "", "Keys in this peer's digest: one per object, and a second one for some that vary.", func(s Status) values { return one(s.Digest.Keys) }},
	{"peer_digest_planned_keys", "", "Number of objects that the digest is planned for.", func(s Status) values { return one(s.Digest.Planned) }},
	{"peer_digest_replans_total", "", "Digests planned because the peer held more objects than the last one was planned for.", func(s Status) values { return one(s.Digest.Replans) }},
	{"peer_digest_false_positive_ratio", "", "Expected share of absent objects that this peer's digest claims.", func(s Status) values { return one(s.Digest.FalsePositiveRate) }},
	{"peer_digest_versions_total", "", "Published versions of the digest.", func(s Status) values { return one(s.Exchange.Published) }},
	{"peer_digest_sent_total", "kind", "Messages about digests sent, by kind: snapshot, delta, advert, squid (digests fetched by Squids).", func(s Status) values {
		e := s.Exchange
		return each(map[string]int64{"snapshot": e.SnapshotsSent, "delta": e.DeltasSent, "advert": e.AdvertsSent, "squid": e.SquidSent})
	}},
	{"peer_digest_sent_bytes_total", "kind", "Bytes of messages about digests sent, by kind as in peer_digest_sent_total, and: vector (comparison of all versions with a random peer), request (for digests, and answers without one), greeting (at the start of connections).", func(s Status) values {
		v := ofDigests(s.Exchange.Sent)
		v["squid"] = float64(s.Exchange.SquidBytes)
		return v
	}},
	{"peer_digest_received_total", "kind", "Messages about digests received, by kind: snapshot, delta, advert.", func(s Status) values {
		e := s.Exchange
		return each(map[string]int64{"snapshot": e.SnapshotsReceived, "delta": e.DeltasReceived, "advert": e.AdvertsReceived})
	}},
	{"peer_digest_received_bytes_total", "kind", "Bytes of messages about digests received, by kind as in peer_digest_sent_bytes_total.", func(s Status) values { return ofDigests(s.Exchange.Received) }},
	{"peer_membership_bytes_total", "way", "Bytes of failure detection and member lists: sent, received.", bothWays(func(t gossip.Traffic) int64 { return t.Membership })},
	{"peer_joins_refused_total", "", "Attempts of this peer to join that another one refused, as for --max-members, a taken name or another secret.", func(s Status) values { return one(s.Exchange.JoinsRefused) }},
	{"peer_sealing_bytes_total", "way", "Bytes that encryption adds to digests and membership, handshakes included: sent, received.", bothWays(func(t gossip.Traffic) int64 { return t.Sealing })},
	{"peer_digest_repairs_total", "", "Versions found by comparison with another peer because their adverts were lost.", func(s Status) values { return one(s.Exchange.Repairs) }},
	{"peer_digest_divergences_total", "", "Replicas that differed from what their peer published, and were fetched again.", func(s Status) values { return one(s.Exchange.Divergences) }},
	{"peer_digest_rejected_total", "", "Digests and deltas rejected as invalid.", func(s Status) values { return one(s.Exchange.Rejected) }},
	{"peer_light", "", "1 if the peer keeps no digests of others.", func(s Status) values { return one(truth(s.Exchange.Light)) }},
	{"peer_questions_total", "result", "Questions of peers that keep no digests, by this peer: asked, and of these unanswered and not-yet; and by others: answered, and of these deferred, with \"not yet\".", func(s Status) values {
		q := s.Exchange.Questions
		return each(map[string]int64{"asked": q.Asked, "unanswered": q.Unanswered, "not-yet": q.NotYet, "answered": q.Answered, "deferred": q.Deferred})
	}},
	{"peer_named_total", "result", "Peers named in answers to questions that were then asked for the object: held, false.", func(s Status) values {
		q := s.Exchange.Questions
		return each(map[string]int64{"held": q.Named - q.False, "false": q.False})
	}},
	{"peer_digest_replica_bytes", "", "Memory for the digests of the other members, bytes.", func(s Status) values { return one(s.Exchange.ReplicaBytes) }},
	{"peer_digest_index_bytes", "", "Memory for the index over the other members' digests, which lookups use, bytes.", func(s Status) values { return one(s.Exchange.IndexBytes) }},

	{"peer_member_up", "member", "1 if the member is alive, 0 if it is dead. Absent once it has left.", func(s Status) values {
		v := values{}
		for _, m := range s.Members {
			if m.State != "left" {
				v[m.Name] = truth(m.Here())
			}
		}
		return v
	}},
	{"peer_member_digest_current", "member", "1 if the replica of the member's digest is the newest known version; 1 at a peer that keeps none.", perMember(func(m Member) float64 { return truth(m.Current) })},
	{"peer_member_digest_age_seconds", "member", "Time since the replica of the member's digest was last known to be current.", perMember(func(m Member) float64 { return m.Age })},
	{"peer_member_digest_keys", "member", "Objects in the member's digest.", perMember(func(m Member) uint64 { return m.Keys })},
	{"peer_member_hits_total", "member", "Requests that the member answered with the object.", perMember(func(m Member) int64 { return m.Hits })},
	{"peer_member_round_trip_seconds", "member", "Recent time from a request to the member until its answer; 0 if it never answered.", perMember(func(m Member) float64 { return m.RoundTrip })},
	{"peer_member_false_hits_total", "member", "Requests for objects that the member did not have.", perMember(func(m Member) int64 { return m.FalseHits })},
	{"peer_member_quarantined", "member", "1 if the member is quarantined: it lacks most of what its digest claims, or sent a wrong answer.", perMember(func(m Member) float64 { return truth(m.State == "quarantined") })},
	{"peer_member_failures_total", "member", "Requests that the member did not answer.", perMember(func(m Member) int64 { return m.Failures })},
}

// A collector gets one status for each scrape, so that all values of a scrape are of the same
// moment.
type collector func() Status

// Describe implements [prometheus.Collector]. It names no metric, which leaves them
// unchecked: a test checks the table.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (c collector) Collect(out chan<- prometheus.Metric) {
	s := c()
	for _, f := range families {
		kind := prometheus.GaugeValue
		if f.counts() {
			kind = prometheus.CounterValue
		}
		names := []string{f.label}
		if f.label == "" {
			names = nil
		}
		desc := prometheus.NewDesc(f.name, f.help, names, nil)
		for label, value := range f.values(s) {
			out <- prometheus.MustNewConstMetric(desc, kind, value, []string{label}[:len(names)]...)
		}
	}
}

// Durations measures how long requests take. It is safe for concurrent use.
type Durations struct {
	histogram *prometheus.HistogramVec
	outcomes  [engine.Outcomes]prometheus.Observer // by engine.Outcome
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
			d.outcomes[i] = d.histogram.WithLabelValues(engine.Outcome(i).String())
		}
	}
	return d
}

// Observe counts one finished request.
func (d *Durations) Observe(e proxy.Event) {
	d.outcomes[e.Outcome].Observe(e.Duration.Seconds())
}

// registry returns the collectors for /metrics.
func registry(status func() Status, durations *Durations) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collector(status), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if durations != nil {
		r.MustRegister(durations.histogram)
	}
	return r
}
