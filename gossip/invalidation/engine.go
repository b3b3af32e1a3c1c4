package invalidation

import (
	"slices"
	"time"
)

// Config configures an [Engine].
type Config struct {
	Origin uint64 // this member's ID
	Life   uint64 // of its process; never 0
	// Since is when this member was last in touch with others in a former life, if it
	// still holds the objects of that life. The zero Time means that it begins with nothing.
	Since time.Time
}

const (
	// Bounds of the entries that are remembered.
	maxEntries = 1 << 16
	maxBytes   = 16 << 20
	horizon    = time.Hour

	maxLogs   = 16384              // as many as there may be members
	logMemory = 7 * 24 * time.Hour // for which the length of a log without entries is remembered
	// gapMemory is for how long a member that missed entries takes no object from members
	// that missed them as well. Those learn of it within seconds.
	gapMemory = time.Minute

	pace       = 5 * time.Millisecond // between two pushes of new entries
	firstRetry = 50 * time.Millisecond
	lastRetry  = 500 * time.Millisecond
	maxPush    = 8    // datagrams at once
	maxBehind  = 1024 // entries that are pushed; a member that lacks more recalls them
	maxBlind   = 32   // entries that are pushed to a member that has sent no receipt yet

	recallRetry = 500 * time.Millisecond // between recalls from the same member
	ageSlack    = 2 * time.Second        // by which ages, which are sent in seconds, may be wrong

	// MaxConcerning is the largest number of entries that a request to a sibling names. The
	// object of an identity that more entries match is not taken from other members.
	MaxConcerning = 32
)

// An Engine is one member's side. Make one with [New].
type Engine struct {
	cfg   Config
	start time.Time
	logs  logs
	own   *log
	peers map[uint64]*peer // living members, by ID

	receipts []*log // whose origins get a receipt at the next Tick
	out      Outputs
	stats    Stats
}

// A peer is another living member. It has acknowledged our log up to entry acked, and was
// sent the entries up to sent. Those between are in flight; they are sent again at retryAt.
type peer struct {
	name string
	life uint64

	heard       bool // it has sent a receipt
	acked, sent uint64
	pushedAt    time.Time // last
	retryAt     time.Time
	wait        time.Duration // until the next retry
	recallAt    time.Time     // when the next recall may be sent to it
}

// dueAt returns when the next push to p is due; the zero Time if p has everything.
func (e *Engine) dueAt(p *peer) time.Time {
	switch {
	case p.acked == e.own.known:
		return time.Time{}
	case p.sent < e.own.known:
		return p.pushedAt.Add(pace)
	}
	return p.retryAt
}

// Outputs is what the caller of an [Engine] must do.
type Outputs struct {
	Datagrams []Datagram
	Recalls   []string  // members to send an [Engine.Recall] to
	Apply     []Pending // to carry out in this order, each followed by [Engine.Applied]
}

// A Datagram is a message to send once; it may be lost.
type Datagram struct {
	To   string
	Data []byte
}

// A Pending is one entry to apply.
type Pending struct {
	Target Target // to remove; nothing if it is the zero Target
	at     ID
}

// Stats counts what an [Engine] did since it was made.
type Stats struct {
	Everything    int64 // invalidations of all objects, because entries were missed for good
	PushesOut     int64
	Bad           int64 // malformed datagrams
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
		maxEntries: maxEntries, maxBytes: maxBytes, horizon: horizon,
		by: make(map[Log]*log), named: make(map[string][]place),
	}
	e.own = e.logs.log(Log{c.Origin, c.Life}, now)
	return e
}

// Issue appends an invalidation to this member's log and returns its sequence number there. The
// target must be valid ([Target.Check]). From now on [Engine.Concerning] names it.
func (e *Engine) Issue(now time.Time, t Target) uint64 {
	at := ID{e.own.Log, e.own.known + 1}
	e.take(e.own, t, now)
	return at.Sequence
}

// take adds the next entry of a log, and has it applied.
func (e *Engine) take(l *log, t Target, now time.Time) {
	e.logs.add(l, t, now)
	e.logs.trim(now)
	e.out.Apply = append(e.out.Apply, Pending{t, ID{l.Log, l.known}})
}

// Applied notes that a step has been carried out. The caller must keep to the order of the steps.
func (e *Engine) Applied(s Pending) {
	l := e.logs.by[s.at.Log]
	if l == nil || s.at.Sequence <= l.applied {
		return
	}
	l.applied = s.at.Sequence
	e.sendReceipt(l)
}

// sendReceipt has the next Tick send a receipt to the origin of a log.
func (e *Engine) sendReceipt(l *log) {
	if l != e.own && !l.receipt {
		l.receipt = true
		e.receipts = append(e.receipts, l)
	}
}

// PeerUp notes that a member is alive; it may be known already.
func (e *Engine) PeerUp(now time.Time, name string, id, life uint64) {
	if p := e.peers[id]; p == nil || p.life != life || p.name != name {
		next := &peer{name: name, life: life, wait: firstRetry}
		e.peers[id] = next
	}
}

// PeerDown notes that a member is gone. It gets the entries that it missed when it is back.
func (e *Engine) PeerDown(id uint64) { delete(e.peers, id) }

// HandleDatagram handles a datagram from another engine. b is not retained.
func (e *Engine) HandleDatagram(now time.Time, b []byte) error {
	if len(b) > 0 && b[0] == receiptByte {
		r, err := decodeReceipt(b)
		if err != nil {
			e.stats.Bad++
			return err
		}
		e.handleReceipt(now, r)
		return nil
	}
	p, err := decodePush(b)
	if err != nil {
		e.stats.Bad++
		return err
	}
	e.handlePush(now, p)
	return nil
}

func (e *Engine) handlePush(now time.Time, p push) {
	from := e.peers[p.Origin]
	if from == nil || p.Log == e.own.Log {
		return // an unknown member pushes again once it is known
	}
	l := e.logs.log(p.Log, now)
	if l == nil {
		return
	}
	e.takeAll(l, p.first, p.entries, now)
	if l.known < p.high && len(p.entries) == 0 {
		if !now.Before(from.recallAt) {
			from.recallAt = now.Add(recallRetry)
			e.out.Recalls = append(e.out.Recalls, from.name)
		}
		return
	}
	e.current(l) // if there is a gap before the entries, the origin sends them from there again
}

// current sends a receipt, unless a step that is not yet applied will bring one.
func (e *Engine) current(l *log) {
	if l.applied == l.known {
		e.sendReceipt(l)
	}
}

// takeAll takes entries of a log, numbered from first, as far as they continue what is known.
func (e *Engine) takeAll(l *log, first uint64, entries []Target, now time.Time) {
	for i, t := range entries {
		if first+uint64(i) == l.known+1 {
			e.take(l, t, now)
		}
	}
}

func (e *Engine) handleReceipt(now time.Time, r receipt) {
	p := e.peers[r.from]
	if p == nil || r.life != e.own.Life || r.applied > e.own.known {
		return
	}
	if r.applied > p.acked || !p.heard {
		p.acked, p.wait = r.applied, firstRetry
		p.retryAt = now.Add(p.wait)
		if !p.heard || p.sent < p.acked {
			p.sent = p.acked
		}
	}
	p.heard = true
}

// Tick sends what is due. Call it after every other call that may have changed something, and
// at the time of [Engine.Next].
func (e *Engine) Tick(now time.Time) {
	for _, l := range e.receipts {
		l.receipt = false
		if p := e.peers[l.Origin]; p != nil {
			e.out.Datagrams = append(e.out.Datagrams, Datagram{p.name, receipt{e.cfg.Origin, l.Life, l.applied}.append(nil)})
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

// push sends p the entries that were not sent to it yet or, if the last ones have brought no
// receipt in time, those that it has not acknowledged.
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
		e.send(p, push{l.Log, l.known, l.known + 1, nil})
		p.sent = l.known
	}
	for range maxPush {
		if p.sent == l.known {
			return
		}
		m, size := push{l.Log, l.known, p.sent + 1, nil}, 1+16+20
		for _, entry := range l.entries[p.sent-l.floor:] {
			if size += entry.maxEncoded(); size > maxDatagram {
				break
			}
			m.entries = append(m.entries, entry)
		}
		if len(m.entries) == 0 { // the next entry fits no datagram: p recalls it
			m.first = l.known + 1
		}
		e.send(p, m)
		p.sent = m.first + uint64(len(m.entries)) - 1
	}
}

func (e *Engine) send(p *peer, m push) {
	e.stats.PushesOut++
	e.out.Datagrams = append(e.out.Datagrams, Datagram{p.name, m.append(nil)})
}

// Drain returns the outputs since the last call.
func (e *Engine) Drain() Outputs {
	out := e.out
	e.out = Outputs{}
	return out
}

// Waiting returns the names of the living members that have not applied this member's log up
// to that entry.
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

// Concerning returns the entries that match an identity, the last one of each log. The object may
// be taken only from a member that has applied them all. ok is false if there are more than
// [MaxConcerning].
func (e *Engine) Concerning(identity string) (ids []ID, ok bool) {
	ids = e.logs.concerning(identity)
	return ids, len(ids) <= MaxConcerning
}

// Forgotten returns when the newest of the entries arrived that this member has forgotten; the zero
// Time if it has forgotten none. A member that was away then may not have applied that entry, which
// [Engine.Concerning] does not name any more.
func (e *Engine) Forgotten() time.Time { return e.logs.forgotten }

// Idle reports whether no remembered entry matches any identity.
func (e *Engine) Idle() bool { return e.logs.idle() }

// Has reports whether this member has applied an entry and all before it in its log.
func (e *Engine) Has(id ID) bool {
	l := e.logs.by[id.Log]
	return l != nil && l.applied >= id.Sequence
}

// Sum returns a hash of how far this member knows every log; 0 if there is none.
func (e *Engine) Sum() uint32 { return e.logs.sum }

// Forget drops entries and logs that are too old. Call it every few seconds.
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

// Settled reports whether this member has applied all entries that it knows.
func (e *Engine) Settled() bool {
	for _, l := range e.logs.by {
		if l.applied < l.known {
			return false
		}
	}
	return true
}
