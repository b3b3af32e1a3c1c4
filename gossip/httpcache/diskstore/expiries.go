package diskstore

import (
	"container/heap"
	"sync"
	"time"
)

// expiries unlists objects when they are due. It has a heap ordered by that time, and a timer
// for the first. Times count from the opening of the store, so that changes of the wall clock
// don't matter. Objects that leave the store earlier leave the heap too, so it holds
// no more objects than the store.
type expiries struct {
	epoch  time.Time // when the store was opened, with a monotonic reading
	unlist func(*object)
	work   sync.Mutex // held while objects are unlisted
	closed bool       // guarded by work

	mu    sync.Mutex
	queue expiryQueue
	timer *time.Timer // for the first of queue
}

func newExpiries(unlist func(*object)) *expiries {
	e := &expiries{epoch: time.Now(), unlist: unlist}
	e.timer = time.AfterFunc(time.Hour, e.run)
	return e
}

// add queues o to be unlisted after some time.
func (e *expiries) add(o *object, after time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.queue = append(e.queue, expiry{time.Since(e.epoch) + after, o})
	o.place = int32(len(e.queue) - 1)
	heap.Fix(&e.queue, int(o.place))
	if o.place == 0 {
		e.timer.Reset(after)
	}
}

func (e *expiries) remove(o *object) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if o.place >= 0 {
		heap.Remove(&e.queue, int(o.place))
	}
}

// run unlists every object that is due.
func (e *expiries) run() {
	e.work.Lock()
	defer e.work.Unlock()
	for !e.closed {
		o := e.due()
		if o == nil {
			return
		}
		e.unlist(o)
	}
}

// due removes and returns the first object if it is due; otherwise it sets the timer.
func (e *expiries) due() *object {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.queue) == 0 {
		return nil
	}
	first := e.queue[0]
	if wait := first.due - time.Since(e.epoch); wait > 0 {
		e.timer.Reset(wait)
		return nil
	}
	heap.Pop(&e.queue)
	return first.o
}

// close stops the timer. No object is unlisted after it returns.
func (e *expiries) close() {
	e.timer.Stop()
	e.work.Lock()
	defer e.work.Unlock()
	e.closed = true
}

// An expiry is an object and the time when it stops being listed.
type expiry struct {
	due time.Duration // since expiries.epoch
	o   *object
}

// expiryQueue implements heap.Interface. An object's place is its index, -1 if it is not queued.
type expiryQueue []expiry

func (q expiryQueue) Len() int           { return len(q) }
func (q expiryQueue) Less(i, j int) bool { return q[i].due < q[j].due }
func (q expiryQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].o.place, q[j].o.place = int32(i), int32(j)
}
func (q *expiryQueue) Pop() any {
	last := len(*q) - 1
	(*q)[last].o.place = -1
	(*q)[last] = expiry{}
	*q = (*q)[:last]
	return nil // returning the expiry would allocate
}
func (q *expiryQueue) Push(any) {} // never called: add appends, since a Push would allocate
