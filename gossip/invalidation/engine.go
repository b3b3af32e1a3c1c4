package invalidation

import (
	"cmp"
	"crypto/ed25519"
	"slices"
	"time"
)

// Config is what an [Engine] needs to know.
type Config struct {
	Origin uint64             // this member's ID
	Life   uint64             // of its process; never 0
	Key    ed25519.PrivateKey // by which it signs; nil = it does not
	// Since is when this member, in a former life, was last in touch with others, if it
	// still holds what it held then. The zero Time means that it begins with nothing.
	Since time.Time

	// Bounds of what is remembered: entries, bytes of them, and for how long. Zero means
	// 65,536, 16 MiB and an hour.
	Entries, Bytes int
	Horizon        time.Duration
}

const (
	defaultEntries = 1 << 16
	defaultBytes   = 16 << 20
	defaultHorizon = time.Hour
	maxLogs        = 4096
	logMemory      = 7 * 24 * time.Hour // for which it is known how long a log was
	// gapMemory is how long a member that missed something takes nothing from those that
	// missed it as well: they learn of it within seconds.
	gapMemory = time.Minute

	pace       = 5 * time.Millisecond // between two pushes of what is new
	firstRetry = 50 * time.Millisecond
	lastRetry  = 500 * time.Millisecond
	maxPush    = 8    // datagrams at once
	maxBehind  = 1024 // entries that are pushed; beyond, the other recalls them
	maxBlind   = 32   // entries that are pushed to one that has not said what it has

	recallRetry = 500 * time.Millisecond // to the same member
	ageSlack    = 2 * time.Second        // by which ages, told in seconds, may be wrong

	// MaxConcerning is how many entries may concern one identity for its object to be
	// taken from other members at all.
	MaxConcerning = 32
)

// An Engine is one member's side. Make one with [New].
type Engine struct {
	cfg   Config
	start time.Time
	logs  logs
	own   *log
	peers map[uint64]*peer // living members, by ID

	receipts []*log // whose origins are to be told how far this member has applied them
	out      Outputs
	stats    Stats
}

// A peer is another living member. Of our log it has acknowledged all up to acked and been
// sent all up to sent. What is between is in flight, and is sent again from retryAt on.
type peer struct {
	name string
	life uint64
	key  ed25519.PublicKey

	heard       bool // a receipt came from it
	acked, sent uint64
	pushedAt    time.Time // last
	retryAt     time.Time
	wait        time.Duration // until the next retry
	recallAt    time.Time     // when it may be asked again
}

// dueAt returns when p is to be pushed to; the zero Time if it has everything.
func (e *Engine) dueAt(p *peer) time.Time {
	switch {
	case p.acked == e.own.known:
		return time.Time{}
	case p.sent < e.own.known:
		return p.pushedAt.Add(pace)
	}
	return p.retryAt
}

// Outputs is what the caller of an [Engine] is to do.
type Outputs struct {
	Datagrams []Datagram
	Recalls   []string // members to send [Engine.Recall] to
	Apply     []Step   // in this order; each then goes to [Engine.Applied]
}

// A Datagram is a message to send once, without knowing whether it arrives.
type Datagram struct {
	To   string
	Data []byte
}

// A Step is to be carried out, and then reported as applied.
type Step struct {
	Target Target // the zero Target means that nothing is to be done
	at     ID
}

// Stats counts what an [Engine] did since it was made.
type Stats struct {
	Everything    int64 // times that something was missed for good, and so all was invalidated
	PushesOut     int64
	Bad           int64 // datagrams that were none
	Forged        int64 // entries without the signature of their origin
	Remembered    int   // entries now
	RememberBytes int   // of them
}

// New returns an engine that knows no other member. It panics if c.Life is 0.
func New(c Config, now time.Time) *Engine {
	if c.Life == 0 {
		panic("invalidation: Config without a life")
	}
	e := &Engine{cfg: c, start: now, peers: make(map[uint64]*peer)}
	if !c.Since.IsZero() {
		e.start = c.Since
	}
	e.logs = logs{
		maxEntries: cmp.Or(c.Entries, defaultEntries), maxBytes: cmp.Or(c.Bytes, defaultBytes),
		horizon: cmp.Or(c.Horizon, defaultHorizon),
		by:      make(map[Log]*log), named: make(map[string][]place),
	}
	e.own = e.logs.log(Log{c.Origin, c.Life}, now)
	return e
}

// Issue makes an invalidation, whose target must be valid ([Target.Check]), and returns its
// place in this member's log. From now on [Engine.Concerning] names it.
func (e *Engine) Issue(now time.Time, t Target) uint64 {
	at := ID{e.own.Log, e.own.known + 1}
	e.take(e.own, t.sign(at, e.cfg.Key), now)
	return at.Sequence
}

// take adds the next entry of a log, to be applied.
func (e *Engine) take(l *log, entry Invalidation, now time.Time) {
	e.logs.add(l, entry, now)
	e.logs.trim(now)
	e.out.Apply = append(e.out.Apply, Step{entry.Target, ID{l.Log, l.known}})
}

// Applied notes that a step has been carried out. Steps come back in their order.
func (e *Engine) Applied(s Step) {
	l := e.logs.by[s.at.Log]
	if l == nil || s.at.Sequence <= l.applied {
		return
	}
	l.applied = s.at.Sequence
	e.receipt(l)
}

// receipt has the origin of a log told how far it was applied.
func (e *Engine) receipt(l *log) {
	if l != e.own && !l.receipt {
		l.receipt = true
		e.receipts = append(e.receipts, l)
	}
}

// PeerUp notes that a member lives, which may be known already. key is that by which it
// signs in this life; empty = it does not.
func (e *Engine) PeerUp(now time.Time, name string, id, life uint64, key ed25519.PublicKey) {
	if p := e.peers[id]; p == nil || p.life != life || p.name != name {
		e.peers[id] = &peer{name: name, life: life, key: key, wait: firstRetry}
	}
}

// PeerDown notes that a member is gone. It hears what it missed when it is back.
func (e *Engine) PeerDown(id uint64) { delete(e.peers, id) }

// HandleDatagram takes in a datagram of this package. b is not retained.
func (e *Engine) HandleDatagram(now time.Time, b []byte) error {
	if len(b) > 0 && b[0] == ReceiptByte {
		r, err := DecodeReceipt(b)
		if err != nil {
			e.stats.Bad++
			return err
		}
		e.handleReceipt(now, r)
		return nil
	}
	p, err := DecodePush(b)
	if err != nil {
		e.stats.Bad++
		return err
	}
	e.handlePush(now, p)
	return nil
}

func (e *Engine) handlePush(now time.Time, p Push) {
	from := e.peers[p.Origin]
	if from == nil || p.Log == e.own.Log {
		return // an unknown member pushes again when it is known
	}
	l := e.logs.log(p.Log, now)
	if l == nil || !e.takeAll(l, p.First, p.Entries, now) {
		return
	}
	if l.known < p.High && len(p.Entries) == 0 {
		if !now.Before(from.recallAt) {
			from.recallAt = now.Add(recallRetry)
			e.out.Recalls = append(e.out.Recalls, from.name)
		}
		return
	}
	e.current(l) // if there is a gap before the entries, the origin goes back
}

// current sends a receipt, unless something is still being applied and will bring one.
func (e *Engine) current(l *log) {
	if l.applied == l.known {
		e.receipt(l)
	}
}

// takeAll takes those of a log's entries, from first on, that come next. It returns false if
// one is forged.
func (e *Engine) takeAll(l *log, first uint64, entries []Invalidation, now time.Time) bool {
	var key ed25519.PublicKey
	if p := e.peers[l.Origin]; p != nil && p.life == l.Life {
		key = p.key
	}
	for i, entry := range entries {
		at := ID{l.Log, first + uint64(i)}
		if at.Sequence != l.known+1 {
			continue
		}
		if !entry.genuine(at, key) {
			e.stats.Forged++
			return false
		}
		e.take(l, entry, now)
	}
	return true
}

func (e *Engine) handleReceipt(now time.Time, r Receipt) {
	p := e.peers[r.From]
	if p == nil || r.Life != e.own.Life || r.Applied > e.own.known {
		return
	}
	if r.Applied > p.acked || !p.heard {
		p.acked, p.wait = r.Applied, firstRetry
		p.retryAt = now.Add(p.wait)
		if !p.heard || p.sent < p.acked {
			p.sent = p.acked
		}
	}
	p.heard = true
}

// Tick does what time has made due. Call it after anything else, and at [Engine.Next].
func (e *Engine) Tick(now time.Time) {
	for _, l := range e.receipts {
		l.receipt = false
		if p := e.peers[l.Origin]; p != nil {
			e.out.Datagrams = append(e.out.Datagrams, Datagram{p.name, Receipt{e.cfg.Origin, l.Life, l.applied}.AppendTo(nil)})
		}
	}
	e.receipts = nil
	for _, p := range e.peers {
		if at := e.dueAt(p); !at.IsZero() && !now.Before(at) {
			e.push(now, p)
		}
	}
}

// Next returns when Tick is next due; the zero Time if nothing is planned.
func (e *Engine) Next() (next time.Time) {
	for _, p := range e.peers {
		if at := e.dueAt(p); !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// push sends p what it has not been sent or, if that has brought no receipt, what it has
// not acknowledged.
func (e *Engine) push(now time.Time, p *peer) {
	l := e.own
	if p.sent > p.acked && !now.Before(p.retryAt) {
		p.sent = p.acked
		p.wait = min(p.wait*3/2, lastRetry)
	}
	if p.sent == p.acked {
		p.retryAt = now.Add(p.wait)
	}
	p.pushedAt = now
	if behind := l.known - p.acked; p.acked < l.floor || behind > maxBehind || !p.heard && behind > maxBlind {
		e.send(p, Push{l.Log, l.known, l.known + 1, nil})
		p.sent = l.known
	}
	for range maxPush {
		if p.sent == l.known {
			return
		}
		m, size := Push{l.Log, l.known, p.sent + 1, nil}, 1+16+20
		for _, entry := range l.entries[p.sent-l.floor:] {
			if size += entry.bytes(); size > MaxDatagram {
				break
			}
			m.Entries = append(m.Entries, entry)
		}
		if len(m.Entries) == 0 { // it fits no datagram
			m.First = l.known + 1
		}
		e.send(p, m)
		p.sent = m.First + uint64(len(m.Entries)) - 1
	}
}

func (e *Engine) send(p *peer, m Push) {
	e.stats.PushesOut++
	e.out.Datagrams = append(e.out.Datagrams, Datagram{p.name, m.AppendTo(nil)})
}

// Drain returns what is to be done since the last call.
func (e *Engine) Drain() Outputs {
	out := e.out
	e.out = Outputs{}
	return out
}

// Waiting returns the living members that have not applied this member's log up to that
// entry, by name.
func (e *Engine) Waiting(sequence uint64) (names []string) {
	for _, p := range e.peers {
		if p.acked < sequence {
			names = append(names, p.name)
		}
	}
	slices.Sort(names)
	return names
}

// OwnApplied returns how far this member has applied its own log.
func (e *Engine) OwnApplied() uint64 { return e.own.applied }

// Concerning returns the entries that concern an identity, the last of each log: only a member
// that has them all may give its object. ok is false if there are more than [MaxConcerning].
func (e *Engine) Concerning(identity string) (ids []ID, ok bool) {
	ids = e.logs.concerning(identity)
	return ids, len(ids) <= MaxConcerning
}

// Idle reports whether nothing concerns any identity.
func (e *Engine) Idle() bool { return e.logs.idle() }

// Has reports whether an entry, and what was before it in its log, was applied here.
func (e *Engine) Has(id ID) bool {
	l := e.logs.by[id.Log]
	return l != nil && l.applied >= id.Sequence
}

// Sum is a hash of how far this member knows every log; 0 if there is none.
func (e *Engine) Sum() uint32 { return e.logs.sum }

// Forget drops what is too old. Call it every few seconds.
func (e *Engine) Forget(now time.Time) {
	e.logs.trim(now)
	e.logs.forget(now, func(l *log) bool { return l == e.own || e.peers[l.Origin] != nil && e.peers[l.Origin].life == l.Life })
}

// Stats returns the counters.
func (e *Engine) Stats() Stats {
	s := e.stats
	s.Remembered, s.RememberBytes = len(e.logs.remembered), e.logs.bytes
	return s
}

// Settled reports whether all that is known here has been applied.
func (e *Engine) Settled() bool {
	for _, l := range e.logs.by {
		if l.applied < l.known {
			return false
		}
	}
	return true
}
