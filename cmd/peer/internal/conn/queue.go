package conn

import (
	"container/heap"
	"math"
	"sync/atomic"
	"time"
)

// A queue has connections in the order in which they give way to others: first those that are silent, then those that
// are idle, last those of addresses with credit; of each kind the oldest first. But an eighth of all may be silent:
// where the others are idle, who has just come would else give way to the next before its request is read. A connection
// that a request came by is moved only when it is looked at, so that requests change nothing here. It implements
// [heap.Interface] and is guarded by its gate's mu.
type queue struct {
	of     int // its number among the places of a connection
	list   []*Conn
	silent atomic.Int64 // of them
}

// maySilent is the part of all connections, one in so many, that gives way only in its turn.
const maySilent = 8

// place is that of a connection in a queue.
type place struct {
	at   int   // its index
	rank int64 // as [pass] had it when it was looked at last, rarely later than it is
}

// kind is the distance of one kind of connections from the next, in nanoseconds.
const kind = math.MaxInt64 / 4

// rank returns the place of a connection in the order: the time since when it is idle, and its kind. A connection of an
// address with credit that has sent nothing yet is of the second kind, like all that may be idle soon.
func (p *pass) rank(now time.Time) (rank int64, busy bool) {
	rank = p.since.Load()
	if busy = rank == 0; busy {
		return now.UnixNano() + 1 + kind, true
	}
	if p.served.Load() {
		rank += kind
	}
	if p.host.credit.places(now) > 0 {
		rank += kind
	}
	return rank, false
}

// serve notes that a request on the connection was answered.
func (p *pass) serve() {
	if !p.served.Load() && !p.served.Swap(true) && p.gate != nil {
		p.gate.conns.silent.Add(-1)
		p.host.conns.silent.Add(-1)
	}
}

// first returns the connection that is to give way first; nil = none is idle. The loop ends: each round
// but the last puts another connection where it belongs, one with a request under way twice at most.
func (q *queue) first(now time.Time) *Conn {
	for len(q.list) > 0 {
		c := q.list[0]
		known := &c.pass.place[q.of].rank
		rank, busy := c.pass.rank(now)
		if !c.pass.served.Load() && !busy && q.silent.Load()*maySilent <= int64(len(q.list)) {
			rank = max(now.UnixNano()+1+2*kind, *known)
		}
		if busy && rank <= *known { // behind it only those with credit may be idle
			rank += kind
		}
		switch {
		case rank > *known:
			*known = rank
			heap.Fix(q, 0)
		case busy:
			return nil
		default:
			return c
		}
	}
	return nil
}

func (q *queue) Len() int { return len(q.list) }

func (q *queue) Less(i, k int) bool {
	return q.list[i].pass.place[q.of].rank < q.list[k].pass.place[q.of].rank
}

func (q *queue) Swap(i, k int) {
	q.list[i], q.list[k] = q.list[k], q.list[i]
	q.list[i].pass.place[q.of].at, q.list[k].pass.place[q.of].at = i, k
}

func (q *queue) Push(c any) {
	own := c.(*Conn)
	own.pass.place[q.of] = place{at: len(q.list)}
	q.list = append(q.list, own)
}

func (q *queue) Pop() any {
	last := len(q.list) - 1
	c := q.list[last]
	q.list[last] = nil
	q.list = q.list[:last]
	return c
}
