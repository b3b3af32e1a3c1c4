package systems

import (
	"cmp"
	"container/heap"
	"math/rand/v2"
	"time"

	"github.com/summarycache/summarycache/digest/index"
	engine "github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/sim/lab"
)

// An exchange is a cluster in virtual time: engines, the contents that they publish, a network
// between them, and counts.
type exchange struct {
	options  exchangeOptions
	job      *lab.Job
	rng      *rand.Rand
	now      time.Time
	events   eventQueue
	contents []*content
	bodies   bodies
	peers    []*exchangePeer // the first options.observed of them know all others
	byName   map[string]*exchangePeer
	publish  engine.Publishing
	err      error
	tally
}

type exchangePeer struct {
	at      int
	name    string
	engine  *engine.Engine // nil before its start
	index   *index.Index   // of all others; only peer 0 has one
	content *content
	version int // the next one of the content
	took    time.Time
	tickAt  time.Time
	owed    float64 // objects replaced since the last version, with a fraction
}

var exchangeStart = time.Unix(1_700_000_000, 0)

func (w *exchange) upTo(d time.Duration) time.Duration {
	return time.Duration(w.rng.Float64() * float64(d))
}

func (p *exchangePeer) observed(w *exchange) bool { return p.at < w.options.observed }

type exchangeOptions struct {
	peers    int // 0 for several numbers of them
	objects  int
	churn    float64       // share of the objects replaced in a minute
	loss     float64       // of datagrams; negative: both 0 and 30 %
	time     time.Duration // 0: depends on the number of peers; so do observed and wait
	delay    time.Duration
	observed int
	contents int
	wait     time.Duration
}

func exchangeDefaults() *exchangeOptions {
	return &exchangeOptions{objects: 100_000, churn: 0.01, loss: -1, delay: 10 * time.Millisecond, contents: 8}
}

// of returns the options for one cluster, with the defaults that depend on its size.
func (o exchangeOptions) of(peers int, loss float64, short bool) exchangeOptions {
	o.peers, o.loss = peers, loss
	if o.observed == 0 || o.observed > peers {
		o.observed = peers
		if peers > mostComplete {
			o.observed = fewObserved
		}
	}
	if o.time == 0 {
		o.time = 20 * time.Second
		if peers > 1000 || short {
			o.time = 5 * time.Second
		}
	}
	if o.wait == 0 {
		o.wait = min(max(time.Duration(peers)*10*time.Millisecond, 100*time.Millisecond), time.Second)
	}
	o.contents = min(o.contents, peers)
	return o
}

const (
	mostComplete = 300 // with up to so many peers, all are observed by default
	fewObserved  = 32
)

// Kinds of messages.
const (
	kindAdvert = iota
	kindRepeat
	kindInline
	kindGet
	kindDelta
	kindSnapshot
	kindAnswer
	kindVector
	manyKinds
)

var kinds = [manyKinds]string{"adverts", "repeats", "inline", "gets", "deltas", "snapshots", "answers", "vectors"}

const (
	in = iota
	out
)

// A tally has the counts of an exchange.
type tally struct {
	joined   time.Duration
	counting bool

	bytes [2][manyKinds]int64 // in and out, of all observed peers

	links        []link // see the method link
	publications []publications
	intervals    time.Duration // sum of the times before each counted publication
	counted      int           // publications
	pending      int           // publications of observed peers that some peer lacks

	lags, everyone spans

	missed, repairs, repairBytes int64

	decoded   int           // changes and filters that observed peers decoded and applied
	timed     int           // those of the peer that measures
	computing time.Duration // its processor time for them
	learned   int           // changes applied to its index
	indexing  time.Duration // its processor time for them
}

// A link is an origin and a receiver, one of them observed.
type link struct {
	sent    uint32 // sequence last advertised
	applied uint32 // sequence last applied
	missed  bool   // an advert was lost, and its version has not been applied since
}

// publications are the publications of one peer whose lag is measured. Number i has sequence
// first+i.
type publications struct {
	first uint32
	list  []publication
}

type publication struct {
	oldest, change time.Time // when its oldest change happened, and a random one
	lacking        int       // how many peers have not applied it yet
}

// spans counts times by the millisecond.
type spans struct {
	counts []int
	n      int
	most   time.Duration
}

// add counts a time. worst may become the greatest time.
func (s *spans) add(d, worst time.Duration) {
	ms := int(d / time.Millisecond)
	for len(s.counts) <= ms {
		s.counts = append(s.counts, 0)
	}
	s.counts[ms]++
	s.n++
	s.most = max(s.most, worst)
}

// quantile returns the time in seconds that a share q of all times does not exceed, or nil if
// there are no times.
func (s *spans) quantile(q float64) any {
	below := 0
	for ms, n := range s.counts {
		if below += n; n > 0 && float64(below) >= q*float64(s.n) {
			return float64(ms+1) / 1000
		}
	}
	return nil
}

func (s *spans) worst() any {
	if s.n == 0 {
		return nil
	}
	return s.most.Seconds()
}

// An eventQueue returns events in order of time, and those of one moment in the order in which
// they were added. It implements [heap.Interface]; use push and pop.
type eventQueue struct {
	events []event
	number uint64
}

type event struct {
	at     time.Duration // since exchangeStart
	number uint64
	do     func()
}

func (q *eventQueue) Len() int { return len(q.events) }

func (q *eventQueue) Swap(i, j int) { q.events[i], q.events[j] = q.events[j], q.events[i] }

func (q *eventQueue) Push(e any) { q.events = append(q.events, e.(event)) }

func (q *eventQueue) Less(i, j int) bool {
	a, b := q.events[i], q.events[j]
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.number, b.number)) < 0
}

func (q *eventQueue) Pop() any {
	last := len(q.events) - 1
	e := q.events[last]
	q.events[last].do = nil
	q.events = q.events[:last]
	return e
}

func (q *eventQueue) push(at time.Duration, do func()) {
	q.number++
	heap.Push(q, event{at, q.number, do})
}

func (q *eventQueue) pop() event { return heap.Pop(q).(event) }
