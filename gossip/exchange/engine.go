package exchange

import (
	"math/rand/v2"
	"time"

	"github.com/summarycache/summarycache/digest"
)

// Engine is one peer's side of the exchange. See the package comment.
type Engine struct {
	cfg Config
	rng *rand.Rand
	id  ID

	// This peer's own digest. Until the first publication, self.Version.Sequence and State are zero
	// and history is empty.
	self        Head
	history     *digest.History
	publishedAt time.Time
	changedAt   time.Time // before the first change since publishedAt; zero if none was seen
	lookedAt    time.Time // when PublishIn was last called
	changes     pace      // of positions that flipped
	asks        float64   // see SetAsks
	step        ownStep   // the datagram with the last change; its result is self

	peers map[ID]*peer
	tags  map[tag]*peer // nil if several peers have the tag, or this peer has it
	order []*peer       // all, by ID
	live  []*peer       // in no particular order

	tagShared bool // another member has this peer's tag

	round   adverts
	want    []*peer // whose digests are to be fetched; see fetch.go
	waiting []*peer // likewise, when there is room for another snapshot
	flights map[uint64]*flight
	number  uint64 // of the last fetch
	// snapshotFlights counts the flights that can only return a snapshot.
	snapshotFlights int

	syncAt          time.Time // zero if no peer is live
	streamAt        time.Time // when vectors may be exchanged again
	known           uint64    // the other peers' part of the sum
	agreedAt        time.Time // when another peer last had the same sum
	differed        bool      // the last sum received differed from this peer's
	eager           int       // syncs left to do in quick succession after joining
	expireAt        time.Time // when expire next has a peer to forget; zero if never
	membersAgreedAt time.Time // when a light peer last had the same sum as this one, which is full
	lightness

	became func(from, to replicaState) // called at each transition if not nil; for the model test

	outputs Outputs
	stats   Stats
}

// New returns an engine that knows no other peer and has published nothing. It panics if cfg lacks
// a required field.
func New(cfg Config, now time.Time) *Engine {
	if !ValidName(cfg.Name) || cfg.Incarnation == 0 {
		panic("exchange: Config without a valid name or incarnation")
	}
	cfg = cfg.withDefaults()
	e := &Engine{
		cfg:     cfg,
		rng:     rand.New(rand.NewPCG(cfg.Seed, uint64(IDOf(cfg.Name)))),
		id:      IDOf(cfg.Name),
		history: digest.NewHistory(cfg.PublishedLog),
		asks:    priorAsks,
		peers:   make(map[ID]*peer),
		tags:    make(map[tag]*peer),
		flights: make(map[uint64]*flight),
	}
	e.self = Head{Origin: e.id, Version: Version{Incarnation: cfg.Incarnation}}
	e.light = cfg.Light
	e.tagPeers()
	return e
}

// Incarnation returns the incarnation of this peer. It changes only if a former life of this peer
// had a greater one: see [Outputs.Incarnation].
func (e *Engine) Incarnation() uint64 { return e.self.Version.Incarnation }

// Self returns the head of the version that this peer has published.
func (e *Engine) Self() Head { return e.self }

// Stats returns the counters.
func (e *Engine) Stats() Stats { return e.stats }

// Replica describes the replica of another peer's digest.
type Replica struct {
	Head   Head           // the zero Head if there is no replica
	Filter *digest.Filter // nil if there is no replica
	Usable bool           // lookups use it
	Behind bool           // a newer version exists, or may exist
}

// Replica returns the replica of the digest of the peer called name. ok is false if the peer is
// unknown.
func (e *Engine) Replica(name string) (r Replica, ok bool) {
	p := e.named(name)
	if p == nil {
		return Replica{}, false
	}
	return Replica{Head: p.held, Filter: p.filter, Usable: p.seen != nil, Behind: p.behind() && !e.light}, true
}

// Drain returns the outputs since the last call.
func (e *Engine) Drain() Outputs {
	out := e.outputs
	e.outputs = Outputs{}
	return out
}

func (e *Engine) emit(ev Event) { e.outputs.Events = append(e.outputs.Events, ev) }

// Tick does the work that is due. Call it at [Engine.Next] at the latest; more calls do no harm.
func (e *Engine) Tick(now time.Time) {
	e.sendAdverts(now)
	e.repeatAdverts(now)
	e.startFetches(now)
	e.startSync(now)
	e.expire(now)
	e.lookComplete(now)
}

// Next returns when Tick must be called next; the zero Time if nothing is planned.
func (e *Engine) Next() time.Time {
	next := e.round.next()
	next = earlier(next, e.round.repeatAt)
	next = earlier(next, e.nextFetch())
	next = earlier(next, e.syncAt)
	next = earlier(next, e.lookAt)
	return earlier(next, e.expireAt)
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// spread makes d longer or shorter by up to half.
func (e *Engine) spread(d time.Duration) time.Duration {
	return d/2 + time.Duration(e.rng.Int64N(int64(d)+1))
}

// jitter makes d longer or shorter by up to a quarter.
func (e *Engine) jitter(d time.Duration) time.Duration {
	return d - d/4 + time.Duration(e.rng.Int64N(int64(d)/2+1))
}
