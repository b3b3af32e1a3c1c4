package diskstore

import (
	"container/heap"
	"math"
	"slices"
	"time"
)

// expiries unlists objects when they are due. It has a heap ordered by that time, and a timer for the first. Times
// count from the opening of the store, in tenths of a second, so that changes of the wall clock don't matter. Objects
// that leave the store earlier are removed when they are half of the heap. All is guarded by store.mu.
type expiries struct {
	store  *store
	epoch  time.Time // when the store was opened, with a monotonic reading
	queue  expiryQueue
	left   int         // objects in it that left the store, or nearly so many
	timer  *time.Timer // for the first of queue
	closed bool
}

const expiryUnit = time.Second / 10

func newExpiries(s *store) *expiries {
	e := &expiries{store: s, epoch: time.Now()}
	e.timer = time.AfterFunc(time.Hour, e.unlistDue)
	return e
}

// maxListed is short enough that tenths of a second don't overflow.
const maxListed = 10 * 365 * 24 * time.Hour

// due converts a time, Unix nanoseconds like now; 0 = it is over. since is how long ago the store was opened.
func (e *expiries) due(at, now int64, since time.Duration) uint32 {
	if at <= now {
		return 0
	}
	return uint32(min((since+min(time.Duration(at-now), maxListed)+expiryUnit-1)/expiryUnit, math.MaxUint32))
}

// add queues o to be unlisted when it is due.
func (e *expiries) add(o *object) {
	e.queue = append(e.queue, o)
	if heap.Fix(&e.queue, len(e.queue)-1); e.queue[0] == o {
		e.timer.Reset(e.wait(o))
	}
}

// wait returns how long it is until o is due.
func (e *expiries) wait(o *object) time.Duration {
	return time.Duration(o.due)*expiryUnit - time.Since(e.epoch)
}

// forget is called for an object that has left the store.
func (e *expiries) forget(o *object) {
	if o.due == 0 {
		return
	}
	if e.left++; e.left > fewLeft && e.left > len(e.queue)/2 {
		e.queue = slices.DeleteFunc(e.queue, func(o *object) bool { return o.is(objLeft) })
		heap.Init(&e.queue)
		e.left = 0
	}
}

// unlistDue unlists every object that is due, and sets the timer for the next. The hooks are called with store.mu held, so
// that none is after close.
func (e *expiries) unlistDue() {
	for more := true; more; {
		e.store.mu.Lock()
		more = !e.closed && len(e.queue) > 0
		if more {
			o := e.queue[0]
			if wait := e.wait(o); wait > 0 && !o.is(objLeft) {
				e.timer.Reset(wait)
				more = false
			} else {
				heap.Pop(&e.queue)
				o.due = 0
				e.store.unlist(o)
			}
		}
		e.store.mu.Unlock()
	}
}

// close stops the timer. No object is unlisted after it returns.
func (e *expiries) close() {
	e.store.mu.Lock()
	e.closed = true
	e.store.mu.Unlock()
	e.timer.Stop()
}

// expiryQueue implements heap.Interface.
type expiryQueue []*object

func (q expiryQueue) Len() int           { return len(q) }
func (q expiryQueue) Less(i, j int) bool { return q[i].due < q[j].due }
func (q expiryQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *expiryQueue) Pop() any {
	last := len(*q) - 1
	(*q)[last] = nil
	*q = (*q)[:last]
	return nil // nobody needs it
}
func (q *expiryQueue) Push(any) {} // never called: add appends, since a Push would allocate
