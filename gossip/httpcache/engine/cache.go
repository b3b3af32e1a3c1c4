package engine

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/internal/background"
	"github.com/summarycache/summarycache/gossip/invalidation"
	"github.com/summarycache/summarycache/gossip/rfc9111"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// Config says what a [Cache] works with.
type Config struct {
	Name      string            // in Via and Cache-Status: a token (RFC 9110 section 5.6.2), unique in the cluster
	Transport http.RoundTripper // sends requests to origins, and limits the time until a header; must neither follow redirects nor decompress
	Siblings  *sibling.Client   // nil = none
	Coalescer Coalescer         // nil = none
	Cluster   sibling.Cluster   // gets the invalidations of writes; nil = this cache is alone
	// Others returns the live siblings, which are asked for stale copies while an origin is down;
	// nil = none.
	Others func() []sibling.Peer
	// Recode returns a function that makes the response to a GET from the response without a
	// content coding, or nil if the response itself is to be fetched. The function rewrites the
	// other response, or returns false and leaves it unchanged. header is that of the request for the
	// other response; Recode changes it if necessary. If it is nil, the caller only wants to know
	// whether there is such a function. nil = there is none.
	Recode func(r *http.Request, header http.Header) func(*http.Response) bool
	// Open opens the store that has these hooks.
	Open func(bodies.Hooks) (bodies.Store, error)
	// Conn returns the connection of a client's request from the request's context, on which an answer
	// may be written past net/http; nil = there is none. Conn itself may be nil.
	Conn func(context.Context) Conn
	// Source says of a request, by its context, whether its origin is in this process, so that no other source is
	// better, and whether the fetch that it begins ends when no request waits for it any more. nil = neither.
	Source func(context.Context) (local, wanted bool)
	// MayStay reports of a request, by its context, whether its goroutine may go on when its client has left, since
	// nothing is kept for the client by then. Such a goroutine fetches what it needs itself. nil = none may.
	MayStay func(context.Context) bool

	// Advertise and Withdraw get the identities of the responses that siblings may request: those
	// that are stored, from New on, and those that are arriving. An identity is advertised while
	// there were more calls of Advertise than of Withdraw for it. They are called from many
	// goroutines at once, some with locks held: they must be quick and must not call the cache. nil
	// = nothing is advertised.
	Advertise, Withdraw func(identity string)

	// Invalidates returns the canonical URLs whose responses must be removed after a request
	// was answered with this status and header; nil = [rfc9111.Invalidated].
	Invalidates func(r *http.Request, target *url.URL, status int, h http.Header) []string

	// Large returns the length in bytes from which the object that a request is for is kept in slices of
	// [SliceSize]; 0 = it never is. nil = [DefaultLarge] for all.
	Large func(*http.Request) int64

	Tuning

	Now    func() time.Time // the wall clock, which may jump; nil = time.Now
	Logger *slog.Logger     // nil = discard
}

// A Tuning is the part of a [Config] that [Cache.Tune] can change while requests are under way.
type Tuning struct {
	// SiblingMaxAge is how long a sibling's answer is served without asking the origin,
	// whatever lifetime it has; 0 = as long as it is fresh. Of siblings' answers, one in Compare
	// is compared with the origin's after it was served; 0 = none.
	SiblingMaxAge time.Duration
	Compare       int

	BetweenBytesTimeout time.Duration // for which the origin or a sibling may pause in a body, if no other source can continue it
	SendTimeout         time.Duration // for which the origin may read nothing of a request's body
}

// A Coalescer, such as what [sibling.NewCoalescer] returns, knows which sibling is fetching, or has just fetched, a
// response that is in no digest yet.
type Coalescer interface {
	// InFlight returns the sibling that is fetching the response of an identity or has just fetched
	// it. If there is none, it announces to the others that this cache is about to fetch it. fetch is
	// the expected duration of that; 0 = unknown.
	InFlight(ctx context.Context, identity string, fetch time.Duration) (sibling.Peer, bool)
	Joined()                                  // is called when a request joins a fetch of this cache
	Served(request http.Header)               // is called when a sibling has got a response from this cache
	Invalidated(t invalidation.Target, n int) // is called when an invalidation of the cluster has removed n responses
}

const (
	leastAdvertised = time.Second // responses that are fresh for no longer are not advertised

	maxTombstones  = 64 << 10 // URLs, and tags, whose invalidation is remembered
	maxHitForMiss  = 16 << 10 // URLs whose last response could not be shared
	hitForMissTime = 30 * time.Second
	maxLiars       = 4 << 10
	maxUnasked     = 64 // fetches at a time that no client waits for
)

// A Cache answers requests. It is safe for concurrent use.
type Cache struct {
	Counters

	cfg         Config
	tuning      atomic.Pointer[Tuning]
	log         *slog.Logger
	store       bodies.Store
	variants    *rfc9111.Variants
	hints       rfc9111.Hints
	invalidated tombstones     // of the cluster's invalidations
	purged      tombstones     // of this cache's own
	reloaded    recent[reload] // of URLs
	hitForMiss  recentURLs     // the last response could not be shared: requests for it don't wait for each other
	large       recentURLs     // objects too large to be fetched as a whole
	unsliced    recentURLs     // objects that can't be fetched in slices
	nowhere     recentURLs     // no sibling had a stale response
	seen        recent[[]sight]
	opened      time.Time    // with a monotonic reading: the origin of the steady clock
	via         []string     // the Via of a message by HTTP/1.1 that had none
	slept       sleep        // by which the steady clock is ahead of Go's
	clock       int64        // identifies the steady clock; never 0
	ticked      atomic.Int64 // the last tick, by the steady clock

	buffers sync.Pool // *[bufferSize]byte, for bodies
	texts   sync.Pool // *bytes.Buffer, for encoded entries
	alarms  sync.Pool // *alarm, stopped
	walks   sync.Pool // *walk

	liars     recent[time.Duration] // when a sibling was last found to have lied, by the steady clock
	tallies   recent[tally]         // by sibling; changed with mu held
	comparing chan struct{}         // a token for each comparison under way
	unasked   chan struct{}         // a token for each fetch that no client waits for

	kept kept

	mu      sync.Mutex
	fetches map[string]*fetch // that can be joined, by key

	fetchBecame func(from, to fetchState) // called at each transition if not nil; for the model test

	work    *background.Group // for which Close waits
	stopped context.Context   // of work: it ends with the cache
}

// New opens the store and returns a Cache over it.
func New(cfg Config) (*Cache, error) {
	if cfg.Transport == nil || cfg.Open == nil {
		return nil, errors.New("cache: a Cache needs a transport to origins and a function that opens its store")
	}
	if cfg.Recode == nil {
		cfg.Recode = func(*http.Request, http.Header) func(*http.Response) bool { return nil }
	}
	if cfg.Source == nil {
		cfg.Source = func(context.Context) (local, wanted bool) { return false, false }
	}
	if cfg.MayStay == nil {
		cfg.MayStay = func(context.Context) bool { return false }
	}
	if cfg.Invalidates == nil {
		cfg.Invalidates = rfc9111.Invalidated
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Cache{cfg: cfg, log: cfg.Logger, variants: rfc9111.NewVariants(),
		fetches: make(map[string]*fetch), comparing: make(chan struct{}, maxComparisons), unasked: make(chan struct{}, maxUnasked),
		opened: time.Now(), slept: sleep{before: int64(suspended())}, clock: 1 + rand.Int64N(math.MaxInt64), via: []string{"1.1 " + cfg.Name}}
	c.tuning.Store(&cfg.Tuning)
	c.buffers.New = func() any { return new([bufferSize]byte) }
	c.walks.New = func() any { return new(walk) }
	c.texts.New = func() any { return new(bytes.Buffer) }
	c.large.limit, c.unsliced.limit = maxLarge, maxUnsliced
	c.seen.limit = maxSeen
	c.nowhere.limit = maxNowhere
	for _, t := range []*tombstones{&c.invalidated, &c.purged} {
		t.limit, t.tags.limit = maxTombstones, maxTombstones
	}
	c.reloaded.limit, c.hitForMiss.limit, c.liars.limit, c.tallies.limit = maxTombstones, maxHitForMiss, maxLiars, maxLiars
	c.work = background.New()
	c.stopped = c.work.Context()
	if cfg.Advertise != nil {
		c.cfg.Advertise, c.cfg.Withdraw = withAnyVariant(cfg.Advertise), withAnyVariant(cfg.Withdraw)
	}
	var err error
	c.store, err = cfg.Open(bodies.Hooks{
		Stored: c.variants.Stored, Evicted: c.variants.Evicted, Listed: c.cfg.Advertise, Unlisted: c.cfg.Withdraw,
		Decode: func(_ string, data []byte) (any, error) { return decodeEntry(data, c.via) },
		Labels: tagsOfEntry, Now: cfg.Now,
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Tune changes the settings that can change. Answers that are being sent may keep the former ones.
func (c *Cache) Tune(t Tuning) { c.tuning.Store(&t) }

// Tuning returns what Tune has set.
func (c *Cache) Tuning() Tuning { return *c.tuning.Load() }

var errStopped = errors.New("cache: closed")

// Close ends fetches under way and closes the store.
func (c *Cache) Close() error {
	c.work.Stop(errStopped)
	c.work.Wait()
	return c.store.Close()
}

// AddStatus appends the cache's member of Cache-Status for one answer.
func (c *Cache) AddStatus(h http.Header, st rfc9111.Status) {
	st.Cache = c.cfg.Name
	st.Add(h)
}

// addVia appends this cache to the Via of a message that was received by this version of HTTP.
func (c *Cache) addVia(h http.Header, major, minor int) {
	if h["Via"] == nil && major == 1 && minor == 1 {
		h["Via"] = c.via
		return
	}
	rfc9111.AddVia(h, major, minor, c.cfg.Name)
}

// detached is a context with the values of a client's request that ends when the cache closes, or is canceled.
type detached struct {
	stopped, values context.Context
	end             context.CancelFunc // nil = it can't be canceled
}

// cancelable makes it one that can be canceled.
func (d *detached) cancelable() { d.stopped, d.end = context.WithCancel(d.stopped) }

func (d *detached) cancel() {
	if d.end != nil {
		d.end()
	}
}

func (d *detached) Deadline() (time.Time, bool) { return time.Time{}, false }
func (d *detached) Done() <-chan struct{}       { return d.stopped.Done() }
func (d *detached) Err() error                  { return d.stopped.Err() }

// Value looks at the cache's context first, where package context finds how to propagate its end.
func (d *detached) Value(key any) any {
	if v := d.stopped.Value(key); v != nil {
		return v
	}
	return d.values.Value(key)
}

// freshened returns the stored response, updated by a 304 or by the answer to a HEAD.
func (c *Cache) freshened(e *entry, a *answer) *entry {
	fresh := e.renewed(e.Freshened(a.header, a.delay, a.received.wall), a.received, c.via)
	if fresh.given == nil { // otherwise even a 304 of the origin does not confirm the body
		fresh.given = a.given
	}
	return fresh
}

// meta returns what the store keeps besides the body of a response. It uses the buffer text.
func (c *Cache) meta(e *entry, text *bytes.Buffer) bodies.Meta {
	return bodies.Meta{Data: e.encode(text), ListUntil: c.listUntil(e, c.now()), Generated: e.generated().wall}
}

// metaOf is meta for the result of a fetch: a derived response is not advertised.
func (c *Cache) metaOf(res *result, e *entry, text *bytes.Buffer) bodies.Meta {
	m := c.meta(e, text)
	if res.derived != nil {
		m.ListUntil = time.Time{}
	}
	return m
}

// listUntil returns until when a response may be advertised: until shortly before it goes stale, so
// that siblings have a digest without it by then. Their copies go stale at the same moment, and
// a request for this one would be a false hit. A response that must be validated each time is
// never advertised, nor is an error that siblings do not take, as its request is not theirs.
func (c *Cache) listUntil(e *entry, now moment) time.Time {
	left := e.freshFor(now)
	if e.Control.NoCache || left <= leastAdvertised || !e.Storable(nil, false) {
		return time.Time{}
	}
	return now.wall.Add(left - min(leastAdvertised, left/20))
}
