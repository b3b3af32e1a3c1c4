package digest

import (
	"math/bits"
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// A CountingFilter follows one cache as objects come and go, and freezes its
// contents into [Filter]s. It counts the keys on each position in four bits. A counter
// that reaches 15 stays there (Fan et al., Summary Cache, section V-C), so there is never
// a false negative.
//
// Callers add a key once when its object arrives and remove it once when the object leaves. For a
// cache that repeats its events, or may outgrow its filter, use a [Set]. All methods are safe for
// concurrent use. Adding and removing different keys scales with the number of cores.
// [CountingFilter.Advance] never blocks readers of filters, and blocks writers for less than a
// millisecond at a million keys.
type CountingFilter struct {
	counters atomic.Pointer[counters] // use now: it is nil in the zero CountingFilter
	current  atomic.Pointer[Filter]
	freezing sync.Mutex // Advance, and the last step of a rebuild
}

// counters has everything that depends on the geometry.
type counters struct {
	geometry   Geometry
	spanMask   uint32 // selects the bits of a position within its shard
	spanBits   uint   // positions that are equal above these bits share a shard
	salt       uint32 // odd, for the hash tables; unsalt is its inverse
	unsalt     uint32
	shards     []shard
	written    []atomic.Uint64         // bit i%64 of word i/64: shard i was written since the last freeze
	frozenKeys int                     // in the last frozen filter; guarded by freezing
	arrayWords int                     // of a shard in array form
	onChange   *atomic.Pointer[func()] // of the counting filter; see OnChange
}

// A shard has at least 2^17 positions. At a thousand positions to a key its table then has
// several lines, so that chance changes their number little, and a freeze takes few locks. A
// shard is smaller if there would be fewer than some forty shards, and larger, up to 2^27
// positions, if there would be more than 1024.
const (
	shardBits    = 10
	fewShardBits = 6
	fewSpanBits  = 17
	minSpanBits  = 12
)

func spanBits(m uint64) uint {
	b := bits.Len64(m - 1)
	return uint(min(max(b-shardBits, min(b-fewShardBits, fewSpanBits), minSpanBits), maxSpanBits))
}

func newCounters(g Geometry) *counters {
	salt := rand.Uint32() | 1
	c := &counters{geometry: g, salt: salt, unsalt: uint32(inverse(uint64(salt))), onChange: new(atomic.Pointer[func()])}
	c.spanBits = spanBits(g.Bits)
	c.spanMask = 1<<c.spanBits - 1
	c.arrayWords = arrayWords(c.span())
	c.shards = make([]shard, (g.Bits-1)>>c.spanBits+1)
	c.written = make([]atomic.Uint64, (len(c.shards)+63)/64)
	return c
}

// NewCountingFilter returns an empty filter. epoch is that of its first versions. A cache
// that starts empty again should use a larger epoch than before; the Unix time will do.
// Zero means 1.
//
// Any number of keys can be added. An empty filter takes next to no memory, and each set
// position takes about five bytes, up to two thirds of a byte for each bit of the filter. With
// one hash, 10⁸ keys take half a gigabyte. Receivers have [Limits]: [Limits.Accept] says
// beforehand whether they will take the filter. 10⁸ keys at a rate of 10⁻³ make a snapshot of
// 143 MB, which is beyond the default.
func NewCountingFilter(g Geometry, epoch uint64) (*CountingFilter, error) {
	if err := g.validate(); err != nil {
		return nil, err
	}
	c := new(CountingFilter)
	c.counters.Store(newCounters(g.normal()))
	c.current.Store(emptyFilter(g.normal(), max(1, epoch)))
	return c, nil
}

func emptyFilter(g Geometry, epoch uint64) *Filter {
	return newFilter(g, Version{Epoch: epoch, State: emptyState(g)}, 0, nil)
}

// Geometry returns how keys become positions. It changes only if a [Set] gives the filter another one.
func (c *CountingFilter) Geometry() Geometry { return c.now().geometry }

// now returns the present counters.
func (c *CountingFilter) now() *counters {
	if c != nil {
		if now := c.counters.Load(); now != nil {
			return now
		}
	}
	panic("digest: a nil or zero CountingFilter: use NewCountingFilter")
}

// Add says that the cache now holds k. A frozen filter contains every key whose
// Add returned before [CountingFilter.Advance] was called.
func (c *CountingFilter) Add(k Key) { c.now().add(k) }

// Remove says that the cache no longer holds k. It returns false, and changes nothing,
// if the counters show that k was not there. A key that was never added may look present,
// as a false positive does; removing it decrements the counters of other keys. So remove
// only what was added.
func (c *CountingFilter) Remove(k Key) bool { return c.now().remove(k) }

// MayContain reports whether every counter of k is above zero. Like [Filter.MayContain] it may be wrong if it says so.
func (c *CountingFilter) MayContain(k Key) bool { return c.now().times(k) > 0 }

// Current returns the last frozen version: an empty one at first. It never blocks.
func (c *CountingFilter) Current() *Filter { c.now(); return c.current.Load() }

// Advance freezes the present contents as the next version and returns it. If no position
// changed since the last time, it returns the same filter again. Meanwhile a writer waits no
// longer than it takes to collect the changes of one shard, which is a thirtieth of a small
// filter and a 1024th of a large one. Shards that nobody wrote are not looked at.
func (c *CountingFilter) Advance() *Filter {
	f, _ := c.AdvanceDelta()
	return f
}

// AdvanceDelta is [CountingFilter.Advance], and also returns what changed: a delta of length
// zero if nothing did. As with [Delta.Apply], time and memory are proportional to the delta's
// length.
func (c *CountingFilter) AdvanceDelta() (*Filter, *Delta) {
	c.now()
	c.freezing.Lock()
	defer c.freezing.Unlock()
	base := c.current.Load()
	d := c.now().collect(base)
	if d.Len() == 0 {
		return base, d
	}
	next := d.flip(base)
	c.current.Store(next)
	return next, d
}

// differs calls the function of OnChange if a shard begins to differ from the frozen filter. before
// and after are its differing positions.
func (c *counters) differs(before, after int32) {
	if before == 0 && after != 0 {
		c.changed()
	}
}

func (c *counters) changed() {
	if f := c.onChange.Load(); f != nil && *f != nil {
		(*f)()
	}
}

func (c *counters) at(p uint64) (*shard, uint32) {
	return &c.shards[p>>(c.spanBits&63)], uint32(p) & c.spanMask
}

// span is the number of positions of a shard.
func (c *counters) span() uint64 { return 1 << c.spanBits }

// write marks the locked shard of a position as written.
func (c *counters) write(s *shard, p uint64) {
	if !s.written {
		s.written = true
		i := p >> (c.spanBits & 63)
		c.written[i>>6].Or(1 << (i & 63))
	}
}

func (c *counters) add(k Key) {
	if c.geometry.Hashes > 1 {
		c.addMany(k)
		return
	}
	p := c.geometry.single(k)
	s, rel := c.at(p)
	s.mu.Lock()
	c.write(s, p)
	s.bump(c, rel)
	s.keys++
	s.mu.Unlock()
}

func (c *counters) remove(k Key) bool {
	if c.geometry.Hashes > 1 {
		return c.removeMany(k)
	}
	p := c.geometry.single(k)
	s, rel := c.at(p)
	s.mu.Lock()
	removed := s.decrement(c, rel) > 0
	if removed {
		c.write(s, p)
		s.keys--
	}
	s.mu.Unlock()
	return removed
}

func (c *counters) addMany(k Key) {
	var buf [maxHashes]uint64
	positions := c.geometry.positions(&buf, k)
	home, _ := c.at(positions[0])
	sortFew(positions)
	c.lock(positions)
	defer c.unlock(positions)
	c.least(positions) // reading all counters first lets the processor fetch them at once
	for _, p := range positions {
		s, rel := c.at(p)
		c.write(s, p)
		s.bump(c, rel)
	}
	home.keys++
}

func (c *counters) removeMany(k Key) bool {
	var buf [maxHashes]uint64
	positions := c.geometry.positions(&buf, k)
	home, _ := c.at(positions[0])
	sortFew(positions)
	c.lock(positions)
	defer c.unlock(positions)
	if c.least(positions) == 0 {
		return false
	}
	for _, p := range positions {
		s, rel := c.at(p)
		c.write(s, p)
		s.decrement(c, rel)
	}
	home.keys--
	return true
}

// times returns the smallest count among a key's positions. The key was added and not removed
// at most so many times.
func (c *counters) times(k Key) uint8 {
	var buf [maxHashes]uint64
	positions := c.geometry.positions(&buf, k)
	sortFew(positions)
	c.lock(positions)
	defer c.unlock(positions)
	return c.least(positions)
}

// sortFew sorts by insertion.
func sortFew(positions []uint64) {
	for i := 1; i < len(positions); i++ {
		for j := i; j > 0 && positions[j] < positions[j-1]; j-- {
			positions[j], positions[j-1] = positions[j-1], positions[j]
		}
	}
}

// least returns the smallest count among positions. At most so many keys have all of them.
func (c *counters) least(positions []uint64) uint8 {
	least := uint8(maxCount)
	for _, p := range positions {
		s, rel := c.at(p)
		least = min(least, s.count(c, rel))
	}
	return least
}

// lock locks the shards of ascending positions, each once.
func (c *counters) lock(positions []uint64) {
	var last *shard
	for _, p := range positions {
		if s, _ := c.at(p); s != last {
			s.mu.Lock()
			last = s
		}
	}
}

func (c *counters) unlock(positions []uint64) {
	var last *shard
	for _, p := range positions {
		if s, _ := c.at(p); s != last {
			s.mu.Unlock()
			last = s
		}
	}
}
