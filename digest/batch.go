package digest

import (
	"sync/atomic"
	"unsafe"
)

// lookAhead is how many keys before its turn memory is asked for a key's counters:
// from four to sixteen it makes no difference.
const lookAhead = 8

// AddAll is [CountingFilter.Add] for each of keys, in about half the time where
// there are more counters than the processor's caches hold: memory is asked for
// several keys' at once. Others may change the filter between two of them.
func (c *CountingFilter) AddAll(keys []Key) {
	for i, k := range keys {
		c.ahead(keys, i)
		c.Add(k)
	}
}

// RemoveAll is [CountingFilter.Remove] for each of keys, as fast as
// [CountingFilter.AddAll]. It returns how many were refused.
func (c *CountingFilter) RemoveAll(keys []Key) (refused int) {
	for i, k := range keys {
		c.ahead(keys, i)
		if !c.Remove(k) {
			refused++
		}
	}
	return refused
}

// ahead asks memory for the counters of keys to come after the i-th, and for those
// of the first ones when it is their turn.
func (c *CountingFilter) ahead(keys []Key, i int) {
	counters := c.counters.Load()
	if i == 0 {
		for _, k := range keys[:min(lookAhead, len(keys))] {
			counters.ask(k)
		}
	}
	if i+lookAhead < len(keys) {
		counters.ask(keys[i+lookAhead])
	}
}

// ask makes memory fetch what an operation on k will look at first. It takes no
// lock: where the counters move meanwhile it asks in vain, and does no harm.
func (c *counters) ask(k Key) {
	if c.geometry.Hashes == 1 {
		c.askTable(c.geometry.single(k))
		return
	}
	var buf [MaxHashes]uint64
	for _, p := range c.geometry.draws(&buf, k) {
		if c.geometry.flat() {
			i, _ := c.flatAt(p)
			prefetchAt(uintptr(unsafe.Pointer(c.flatBase.Load()))+uintptr(i)*4, 4)
		} else {
			c.askTable(p)
		}
	}
}

func (c *counters) askTable(p uint64) {
	s, rel := c.at(p)
	base := uintptr(atomic.LoadPointer((*unsafe.Pointer)(unsafe.Pointer(&s.base))))
	size := atomic.LoadInt32(&s.size)
	if int(size) >= c.arrayWords { // tables are smaller
		i, _ := arrayAt(rel)
		prefetchAt(base+uintptr(i)*4, 4)
		return
	}
	t := lines{size: size}
	prefetchAt(base+uintptr(t.home(c, c.scatter(rel)))*(perLine*4), perLine*4)
}

// move gives a shard other words. ask looks at it from outside the lock.
func (s *shard) move(base *uint32, size int) {
	atomic.StorePointer((*unsafe.Pointer)(unsafe.Pointer(&s.base)), unsafe.Pointer(base))
	atomic.StoreInt32(&s.size, int32(size))
}
