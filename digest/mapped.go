package digest

import "fmt"

// MapTo moves the counters to a file at path, which is mapped into memory: the
// system may then write them out when memory is short, without swap space, so that
// they need not be resident (after Grothoff, who notes that lookups never touch
// them). That saves nothing while keys come and go: what is touched is resident, and
// what was touched has to be written. It saves all but some tens of kilobytes of
// accounts and journals while they do not. Frozen filters stay where they are. The
// file is scratch space. It is created anew, must not be used by anyone else, and
// is removed by Close.
//
// What survives a restart is not this file, which a crash would leave half
// written with nothing to tell by, but what [CountingFilter.AppendTo] gives: it is a
// fraction of the size, and has a checksum. After a restart, read it by
// [DecodeCountingFilter], go through the store once for
// [CountingFilter.Verify], which finds what came or went since it was saved, and
// map again.
//
// Writers wait while the counters are copied. A [CountingFilter.Rebuild] moves
// them back to ordinary memory. It is an error to map twice, or where the system
// cannot.
func (c *CountingFilter) MapTo(path string) error {
	c.building.Lock()
	defer c.building.Unlock()
	c.freezing.Lock()
	defer c.freezing.Unlock()
	counters := c.counters.Load()
	if counters.arena != nil {
		return fmt.Errorf("digest: map counters to %s: they are in %s", path, counters.arena.file.Name())
	}
	arena, err := newArena(path)
	if err != nil {
		return err
	}
	counters.lockAll()
	defer counters.unlockAll()
	counters.arena = arena
	if counters.geometry.flat() {
		flat := arena.words(len(counters.flat))
		copy(flat, counters.flat)
		counters.setFlat(flat)
	}
	for i := range counters.shards {
		s := &counters.shards[i]
		if s.size > 0 {
			words := arena.words(int(s.size))
			copy(words, s.words())
			s.move(&words[0], len(words))
		}
	}
	if err := arena.overflow; err != nil {
		return fmt.Errorf("digest: map counters to %s: %w", path, err)
	}
	return nil
}

// Close empties the filter and removes the file that its counters are in, if
// there is one. The last frozen filter remains. It returns, among others, the
// error that kept the file from growing, after which counters were kept in
// ordinary memory. Only mapped filters need it.
func (c *CountingFilter) Close() error {
	c.building.Lock()
	defer c.building.Unlock()
	c.freezing.Lock()
	defer c.freezing.Unlock()
	old := c.counters.Load()
	old.lockAll()
	defer old.unlockAll()
	c.counters.Store(newCounters(old.geometry))
	return old.retire()
}

// retire lets go of the counters. Whoever still has them finds them retired, or
// empty. All shards are locked.
func (c *counters) retire() error {
	c.retired = true
	if c.arena == nil {
		return nil
	}
	c.setFlat(nil)
	for i := range c.shards {
		s := &c.shards[i]
		if s.rare != nil {
			s.rare.journal = nil
		}
		s.move(nil, 0)
		s.wide, s.room, s.dirty, s.isArray = false, 0, 0, false
	}
	return c.arena.close()
}

func (c *counters) lockAll() {
	for i := range c.shards {
		c.shards[i].mu.Lock()
	}
}

func (c *counters) unlockAll() {
	for i := range c.shards {
		c.shards[i].mu.Unlock()
	}
}
