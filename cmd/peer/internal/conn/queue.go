package conn

import (
	"container/heap"
	"time"
)

// A queue has connections in the order in which they became idle. A connection that a request came by is
// moved only when it is looked at, so that requests change nothing here. It implements [heap.Interface] and
// is guarded by its gate's mu.
type queue struct {
	of   int // its number among the places of a connection
	list []*Conn
}

// place is that of a connection in a queue.
type place struct {
	at    int   // its index
	since int64 // as [pass] had it when it was looked at last, never later than it is
}

// oldest returns the connection that has been idle for longest; nil = none is idle. The loop ends: each round
// but the last puts another connection where it belongs.
func (q *queue) oldest(now time.Time) *Conn {
	for len(q.list) > 0 {
		c := q.list[0]
		known, since := &c.pass.place[q.of].since, c.pass.since.Load()
		if since == 0 { // a request is under way
			since = now.UnixNano() + 1
		}
		switch {
		case since > *known:
			*known = since
			heap.Fix(q, 0)
		case since > now.UnixNano():
			return nil
		default:
			return c
		}
	}
	return nil
}

func (q *queue) Len() int { return len(q.list) }

func (q *queue) Less(i, k int) bool {
	return q.list[i].pass.place[q.of].since < q.list[k].pass.place[q.of].since
}

func (q *queue) Swap(i, k int) {
	q.list[i], q.list[k] = q.list[k], q.list[i]
	q.list[i].pass.place[q.of].at, q.list[k].pass.place[q.of].at = i, k
}

func (q *queue) Push(c any) {
	own := c.(*Conn)
	own.pass.place[q.of] = place{len(q.list), own.pass.since.Load()}
	q.list = append(q.list, own)
}

func (q *queue) Pop() any {
	last := len(q.list) - 1
	c := q.list[last]
	q.list[last] = nil
	q.list = q.list[:last]
	return c
}
