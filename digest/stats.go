package digest

import "fmt"

// The statistics of a filter. Each takes the locks of all shards in turn, which takes
// microseconds.

// Len returns how many keys were added and not removed.
func (c *CountingFilter) Len() int {
	n := 0
	for s := range c.now().locked {
		n += int(s.keys)
	}
	return max(0, n)
}

// Changed returns how many positions differ from the last frozen filter: the
// length of the delta that Advance would make now.
func (c *CountingFilter) Changed() (n int) {
	for s := range c.now().locked {
		n += int(s.differing)
	}
	return n
}

// locked yields each shard in turn, locked.
func (c *counters) locked(yield func(*shard) bool) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		more := yield(s)
		s.mu.Unlock()
		if !more {
			return
		}
	}
}

// Saturated returns how many counters are stuck at 15 until the next Rebuild.
func (s inside) Saturated() (n int) {
	for shard := range s.filter.now().locked {
		n += int(shard.saturated)
	}
	return n
}

// Crowded returns an error if far fewer positions of the last frozen version are set than so many keys
// set, and nil otherwise: then most keys share a few positions, and absent ones do, too. Such keys are
// no uniform hashes: make them by [KeyOf] or [KeyOfUint64].
func (s inside) Crowded() error {
	f := s.filter.Current()
	const few = 16 // keys may share positions by chance
	fill, _ := f.geometry.predict(f.keys)
	if want := fill * float64(f.geometry.Bits); f.keys > few && float64(f.ones) < want/2 {
		return fmt.Errorf("digest: %w: %d keys set %d positions, uniform ones set %.0f: see KeyOfUint64", errGeometry, f.keys, f.ones, want)
	}
	return nil
}
