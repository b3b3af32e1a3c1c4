package store

import (
	"container/heap"
	"sync"
	"time"
)

// expiries unlists objects when their time has come: a heap by it and one
// goroutine that sleeps until the first. Times are since the store was opened, so
// that a clock that is put forward or back doesn't move them. Objects that leave the store earlier
// leave the heap too, so it holds no more than the store does.
type expiries struct {
	epoch time.Time // when the store was opened, by the monotonic clock
	mu    sync.Mutex
	queue expiryQueue
	wake  chan struct{} // capacity 1: the first entry changed
	stop  chan struct{}
	done  chan struct{}
}

func newExpiries() *expiries {
	return &expiries{epoch: time.Now(), wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
}

// add has o unlisted after a while.
func (e *expiries) add(o *Object, after time.Duration) {
	e.mu.Lock()
	e.queue = append(e.queue, expiry{time.Since(e.epoch) + after, o})
	o.place = int32(len(e.queue) - 1)
	heap.Fix(&e.queue, int(o.place))
	first := o.place == 0
	e.mu.Unlock()
	if first {
		select {
		case e.wake <- struct{}{}:
		default:
		}
	}
}

func (e *expiries) remove(o *Object) {
	e.mu.Lock()
	if o.place >= 0 {
		heap.Remove(&e.queue, int(o.place))
	}
	e.mu.Unlock()
}

// due removes and returns the first object if its time has come, else how long
// that takes, at most an hour.
func (e *expiries) due() (*Object, time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.queue) == 0 {
		return nil, time.Hour
	}
	if d := e.queue[0].due - time.Since(e.epoch); d > 0 {
		return nil, min(d, time.Hour)
	}
	o := e.queue[0].o
	heap.Pop(&e.queue)
	return o, 0
}

// run calls unlist for every object that is due, until close.
func (e *expiries) run(unlist func(*Object)) {
	defer close(e.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		o, wait := e.due()
		if o != nil {
			unlist(o)
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-e.wake:
		case <-e.stop:
			return
		}
	}
}

func (e *expiries) close() {
	close(e.stop)
	<-e.done
}

// An expiry says when an object stops being listed.
type expiry struct {
	due time.Duration
	o   *Object
}

// expiryQueue implements heap.Interface; place is an object's index, -1 outside.
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
	return nil // a value would be allocated
}
func (q *expiryQueue) Push(any) {} // add appends, for the same reason
