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
	o.due = time.Since(e.epoch) + after
	heap.Push(&e.queue, o)
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
		heap.Remove(&e.queue, o.place)
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
	return heap.Pop(&e.queue).(*Object), 0
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

// expiryQueue implements heap.Interface; place is an object's index, -1 outside.
type expiryQueue []*Object

func (q expiryQueue) Len() int           { return len(q) }
func (q expiryQueue) Less(i, j int) bool { return q[i].due < q[j].due }
func (q expiryQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}
func (q *expiryQueue) Push(x any) {
	o := x.(*Object)
	o.place = len(*q)
	*q = append(*q, o)
}
func (q *expiryQueue) Pop() any {
	last := len(*q) - 1
	o := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	o.place = -1
	return o
}
