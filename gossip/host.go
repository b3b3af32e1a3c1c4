package gossip

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/index"
	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/internal/removals"
)

// host runs the engine of the exchange: it passes on what membership hears, fetches, and keeps the index.
type host struct {
	*group
	removals *removals.Removals

	digestLimits digest.Limits
	digests      digestLedger   // of the others
	serving      chan struct{}  // a place for each body being served
	index        *index.Index   // of the others' digests
	former       *digest.Filter // this peer's digest of a former life, until publishFirst; nil if unknown
	replans      uint64         // of the holdings, as far as they are logged
	demand       exchange.Demand
	asking       asking

	mu     sync.Mutex // guards engine
	engine *exchange.Engine

	sum        atomic.Uint32 // of the digests and members that this peer knows
	datagrams  chan []byte
	woken      chan struct{}
	calls      chan func() // for loop
	publisher  chan func() // for publishLoop
	changed    chan struct{}
	firstWait  atomic.Int64 // nanoseconds that a first change waits
	exchanging turn         // of loop
	publishing turn         // of publishLoop
	hooks      chan func()  // for callHooks
}

const (
	datagramBacklog = 1024
	hookBacklog     = 1024

	digestMemory = 256 << 20 // bytes of memory for decoding a digest, at least
	servesMost   = 32        // bodies served at once
)

func newHost(g *group, gone *removals.Removals) *host {
	cfg := g.cfg
	h := &host{
		group: g, removals: gone,
		digestLimits: cfg.digestLimits(),
		digests:      digestLedger{memory: cfg.Limits.DigestMemory},
		serving:      make(chan struct{}, servesMost),
		index:        index.New(),
		datagrams:    make(chan []byte, datagramBacklog),
		woken:        make(chan struct{}, 1),
		calls:        make(chan func(), 16),
		publisher:    make(chan func()),
		changed:      make(chan struct{}, 1),
		hooks:        make(chan func(), hookBacklog),
		engine: exchange.New(exchange.Config{
			Name:        cfg.Name,
			Incarnation: g.incarnation.Load(),
			Seed:        rand.Uint64(),
			Publish:     cfg.Publish,
			DigestBytes: cfg.Limits.DigestBytes,
			Light:       g.cfg.Light,
		}, time.Now()),
	}
	h.asking.waiting = make(map[uint32]asked)
	h.asking.members.Store(new(directory))
	return h
}

func (h *host) start() {
	h.work.Go(h.loop)
	h.work.Go(h.callHooks)
	if h.cfg.StateFile != "" {
		h.work.Go(h.saveLoop)
	}
	if h.cfg.Holdings != nil {
		h.work.Go(h.publishLoop)
	}
}

// sendFarewell sends a farewell to every live peer, including those that became members just now.
func (h *host) sendFarewell() {
	h.handleMemberEvents()
	h.mu.Lock()
	farewells := h.engine.Leave()
	h.mu.Unlock()
	table := *h.members.Load()
	for i, d := range farewells {
		if m := table[d.To]; m != nil && m.info.Load().meta.Farewell != "" {
			farewells[i].Data = h.signed(d.Data)
		}
	}
	h.send(farewells)
}
