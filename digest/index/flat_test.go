package index

import (
	"fmt"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/sim/cputime"
)

// A flat is the rival of Index, built to its end: a table of slots of four bytes, sixteen in a cache line
// by the key's upper bits. It has what the table of Index has, for filters with one hash: removal, growth
// of a part at a time, readers that wait for nobody, peers of different m, and more than a thousand peers.
// It has no shared positions, so copies of one cache take as much as different ones, and a slot has the
// lower bits of a position beside the peer's place, as many as are left.
type flat struct {
	segments  []atomic.Pointer[flatSegment]
	shift     uint // of a key, to the number of its segment
	view      atomic.Pointer[flatView]
	write     sync.Mutex
	peers     map[string]*flatPeer
	free      []uint32
	placeBits uint // of a slot
	buffer    []uint64
}

const (
	flatSlots = 15 // a line has a word that says how many entries of it are in later lines
	flatSpill = 3  // later lines
)

type flatLine [flatSlots + 1]uint32

type flatSegment struct {
	lines     []flatLine // and flatSpill more
	placeBits uint
	shift     uint
	entries   int
}

type flatPeer struct {
	name   string
	place  uint32 // from 1
	m      uint64
	filter *digest.Filter
	rate   float64 // as of Set
}

type flatView struct {
	peers   []*flatPeer // by place
	classes []uint64    // different m
}

// newFlat returns a table for about so many entries, for which it has segments of some thousands.
func newFlat(entries int) *flat {
	segmentBits := max(1, bits.Len(uint(entries))-13)
	x := &flat{peers: map[string]*flatPeer{}, placeBits: 10, shift: uint(64 - segmentBits)}
	x.segments = make([]atomic.Pointer[flatSegment], 1<<segmentBits)
	for i := range x.segments {
		x.segments[i].Store(&flatSegment{lines: make([]flatLine, 1+flatSpill), placeBits: x.placeBits, shift: x.shift})
	}
	x.view.Store(&flatView{peers: make([]*flatPeer, 1)})
	return x
}

func (s *flatSegment) home(k uint64) int {
	line, _ := bits.Mul64(k<<(64-s.shift), uint64(len(s.lines)-flatSpill))
	return int(line)
}

func (x *flat) Lookup(dst []Match, k digest.Key) []Match {
	from := len(dst)
	for {
		v := x.view.Load()
		s := x.segments[k>>x.shift].Load()
		at := s.home(uint64(k))
		for _, m := range v.classes {
			want := uint32(high(uint64(k), m)) << s.placeBits
			for at := at; ; at++ {
				l := s.lines[at].words()
				for i := range l {
					w := atomic.LoadUint64(&l[i])
					if i == 0 {
						w &^= 1<<32 - 1 // the first half says how many entries have spilled
					}
					if (uint32(w)^want)>>s.placeBits == 0 {
						dst = v.match(dst, uint32(w)&(1<<s.placeBits-1), m)
					}
					if (uint32(w>>32)^want)>>s.placeBits == 0 {
						dst = v.match(dst, uint32(w>>32)&(1<<s.placeBits-1), m)
					}
				}
				if uint32(atomic.LoadUint64(&l[0])) == 0 || at == len(s.lines)-1 {
					break
				}
			}
		}
		if x.view.Load() == v {
			if len(dst)-from > 1 {
				slices.SortFunc(dst[from:], func(a, b Match) int { // rarely more than one
					switch {
					case a.FalsePositiveRate < b.FalsePositiveRate:
						return -1
					case a.FalsePositiveRate > b.FalsePositiveRate:
						return 1
					}
					return 0
				})
				out := slices.CompactFunc(dst[from:], func(a, b Match) bool { return a.Peer == b.Peer })
				dst = dst[:from+len(out)]
			}
			return dst
		}
		dst = dst[:from]
	}
}

func (v *flatView) match(dst []Match, place uint32, m uint64) []Match {
	if place == 0 || int(place) >= len(v.peers) || v.peers[place] == nil || v.peers[place].m != m {
		return dst
	}
	return append(dst, Match{Peer: v.peers[place].name, FalsePositiveRate: v.peers[place].rate})
}

// lines yields the first and the last line of a position in a segment.
func (s *flatSegment) linesOf(p, m uint64, number uint64) (first, last int) {
	r := reachOf(p, m)
	low, highest := number<<s.shift, (number+1)<<s.shift-1
	return s.home(max(r.first, low)), s.home(min(r.last, highest))
}

func (s *flatSegment) put(at int, slot uint32) bool {
	for i := at; i <= at+flatSpill; i++ {
		for j := 1; j <= flatSlots; j++ {
			if s.lines[i][j] == 0 {
				s.lines[i].store(j, slot)
				for n := at; n < i; n++ {
					s.lines[n].store(0, s.lines[n][0]+1)
				}
				s.entries++
				return true
			}
		}
	}
	return false
}

func (s *flatSegment) take(at int, slot uint32) {
	for i := at; i <= at+flatSpill; i++ {
		for j := 1; j <= flatSlots; j++ {
			if s.lines[i][j] == slot {
				s.lines[i].store(j, 0)
				for n := at; n < i; n++ {
					s.lines[n].store(0, s.lines[n][0]-1)
				}
				s.entries--
				return
			}
		}
	}
	panic("an entry is lost")
}

func (l *flatLine) store(j int, v uint32) {
	w := l.words()
	shift := uint(j&1) * 32
	atomic.StoreUint64(&w[j/2], w[j/2]&^((1<<32-1)<<shift)|uint64(v)<<shift)
}

func (l *flatLine) words() *[8]uint64 { return (*[8]uint64)(unsafe.Pointer(l)) }

// slot is what a peer's position is stored as.
func (x *flat) slot(p uint64, place uint32, placeBits uint) uint32 {
	return uint32(p)<<placeBits | place
}

// change applies flips of one segment: positions that e has now, or has no more.
func (x *flat) change(number uint64, e *flatPeer, old *digest.Filter, flips []uint64, set func(int) bool) {
	s := x.segments[number].Load()
	adds := 0
	for i := range flips {
		if set(i) {
			adds++
		}
	}
	if s.entries+adds > (len(s.lines)-flatSpill)*flatSlots*flatFullest/100 || s.placeBits != x.placeBits {
		s = x.rebuild(number, (s.entries+adds)*110/flatFullest/flatSlots+1, e, old)
	}
	for !x.redo(s, number, e, flips, set) {
		// What has been done of the flips is done again, so begin with the old ones.
		s = x.rebuild(number, len(s.lines)*flatGrowth/16, e, old)
	}
	x.segments[number].Store(s)
}

func (x *flat) redo(s *flatSegment, number uint64, e *flatPeer, flips []uint64, set func(int) bool) bool {
	for i, p := range flips {
		first, last := s.linesOf(p, e.m, number)
		for at := first; at <= last; at++ {
			if slot := x.slot(p, e.place, s.placeBits); !set(i) {
				s.take(at, slot)
			} else if !s.put(at, slot) {
				return false
			}
		}
	}
	return true
}

const (
	flatFullest = 88 // per cent of the slots of a segment
	flatGrowth  = 20 // sixteenths; 17 takes a tenth less memory and a third more time for a look-up
)

// rebuild makes a segment of at least so many lines, of the filters of all peers; that of e is old.
func (x *flat) rebuild(number uint64, lines int, e *flatPeer, old *digest.Filter) *flatSegment {
	for ; ; lines += lines/16 + 1 {
		s := &flatSegment{lines: make([]flatLine, lines+flatSpill), placeBits: x.placeBits, shift: x.shift}
		if x.fill(s, number, e, old) {
			return s
		}
	}
}

func (x *flat) fill(s *flatSegment, number uint64, e *flatPeer, old *digest.Filter) bool {
	for _, p := range x.peers {
		f := p.filter
		if p == e {
			f = old
		}
		if f == nil {
			continue
		}
		for _, pos := range x.positions(f, p.m, number) {
			first, last := s.linesOf(pos, p.m, number)
			for at := first; at <= last; at++ {
				if !s.put(at, x.slot(pos, p.place, s.placeBits)) {
					return false
				}
			}
		}
	}
	return true
}

// positions returns those of a filter that have keys in a segment.
func (x *flat) positions(f *digest.Filter, m, number uint64) []uint64 {
	low, highest := number<<x.shift, (number+1)<<x.shift-1
	from, to := high(low, m), high(highest, m)
	some := int(f.Ones()/uint64(len(x.segments))*5/4 + 32)
	x.buffer = f.AppendPositions(x.buffer[:0], from, some)
	for len(x.buffer) >= some && x.buffer[len(x.buffer)-1] <= to {
		x.buffer = f.AppendPositions(x.buffer, x.buffer[len(x.buffer)-1]+1, some)
		some += some
	}
	n, found := slices.BinarySearch(x.buffer, to)
	if found {
		n++
	}
	return x.buffer[:n]
}

func (x *flat) Set(name string, f *digest.Filter) {
	x.write.Lock()
	defer x.write.Unlock()
	if x.peers[name] != nil {
		x.forget(name)
	}
	e := &flatPeer{name: name, m: f.Geometry().Bits, place: uint32(len(x.peers) + 1)}
	if n := len(x.free); n > 0 {
		e.place, x.free = x.free[n-1], x.free[:n-1]
	}
	x.placeBits = max(x.placeBits, uint(bits.Len32(e.place)))
	x.peers[name] = e
	for i := range uint64(len(x.segments)) {
		x.change(i, e, nil, slices.Clone(x.positions(f, e.m, i)), func(int) bool { return true })
	}
	e.filter, e.rate = f, f.FalsePositiveRate()
	x.publish()
}

// publish also removes nothing: places are reused only after forget.
func (x *flat) publish() {
	v := &flatView{peers: make([]*flatPeer, 1)}
	for _, e := range x.peers {
		for len(v.peers) <= int(e.place) {
			v.peers = append(v.peers, nil)
		}
		v.peers[e.place] = e
		if e.filter != nil && !slices.Contains(v.classes, e.m) {
			v.classes = append(v.classes, e.m)
		}
	}
	x.view.Store(v)
}

func (x *flat) forget(name string) {
	e := x.peers[name]
	for i := range uint64(len(x.segments)) {
		x.change(i, e, e.filter, slices.Clone(x.positions(e.filter, e.m, i)), func(int) bool { return false })
	}
	delete(x.peers, name)
	x.free = append(x.free, e.place)
	x.publish()
}

func (x *flat) Delete(name string) {
	x.write.Lock()
	defer x.write.Unlock()
	if x.peers[name] != nil {
		x.forget(name)
	}
}

// Apply changes a peer whose filter is d's base.
func (x *flat) Apply(name string, d *digest.Delta, next *digest.Filter) {
	x.write.Lock()
	defer x.write.Unlock()
	e := x.peers[name]
	old, done := e.filter, uint64(0)
	flips := d.AppendPositions(nil)
	for len(flips) > 0 {
		number := reachOf(flips[0], e.m).first >> x.shift
		if from := reachOf(flips[0], e.m).last >> x.shift; done == number+1 {
			number = from
		}
		n := 0
		for n < len(flips) && reachOf(flips[n], e.m).first>>x.shift <= number {
			n++
		}
		is := make([]bool, n)
		for i, p := range flips[:n] {
			is[i] = !old.MayContain(digest.Key(firstKey(p, e.m)))
		}
		x.change(number, e, old, flips[:n], func(i int) bool { return is[i] })
		done = number + 1
		if reachOf(flips[n-1], e.m).last>>x.shift > number {
			n-- // it has keys in the next segment, too
		}
		flips = flips[n:]
	}
	e.filter = next
}

func (x *flat) MemoryBytes() (n int) {
	for i := range x.segments {
		n += 64*len(x.segments[i].Load().lines) + 64
	}
	return n + 200*len(x.peers)
}

// TestFlat compares the rival with the filters, so that what is measured is a table that works.
func TestFlat(t *testing.T) {
	rng := random(9)
	x := newFlat(120_000)
	type peer struct {
		held *digest.CountingFilter
		keys []digest.Key
	}
	peers := map[string]*peer{}
	for i := range 40 {
		p := &peer{keys: randomKeys(rng, 3000)}
		p.held = counting(t, digest.Geometry{Bits: 3_000_000 + uint64(i%3)*70_000, Hashes: 1}, p.keys...)
		p.held.Advance()
		peers[fmt.Sprint(i)] = p
		x.Set(fmt.Sprint(i), p.held.Current())
	}
	for round := range 60 {
		name := fmt.Sprint(rng.IntN(40))
		p := peers[name]
		for range 300 {
			i := rng.IntN(len(p.keys))
			p.held.Remove(p.keys[i])
			p.keys[i] = digest.Key(rng.Uint64())
			p.held.Add(p.keys[i])
		}
		f, d := p.held.AdvanceDelta()
		if round%7 == 6 {
			x.Delete(name)
			x.Set(name, f)
			continue
		}
		x.Apply(name, d, f)
	}
	wrong, more := 0, 0
	for i := range 40 {
		for _, k := range append(peers[fmt.Sprint(i)].keys[:500], randomKeys(rng, 500)...) {
			got := map[string]bool{}
			for _, m := range x.Lookup(nil, k) {
				got[m.Peer] = true
			}
			for name, p := range peers {
				if p.held.Current().MayContain(k) {
					if !got[name] {
						wrong++
					}
					delete(got, name)
				}
			}
			more += len(got)
		}
	}
	if wrong > 0 || more > 40 {
		t.Errorf("%d peers are missing, %d too many", wrong, more)
	}
}

type rival interface {
	Lookup([]Match, digest.Key) []Match
	MemoryBytes() int
}

// BenchmarkRival fills Index and its rival with the same filters, and measures the time of Set and Apply,
// memory, and look-ups of keys that one peer has, that none has, and that are hot.
func BenchmarkRival(b *testing.B) {
	for _, c := range []benchCluster{{10, 10_000}, {1000, 10_000}, {100, 100_000}, {1000, 100_000}} {
		g := c.geometry()
		for _, which := range []string{"index", "flat"} {
			b.Run(fmt.Sprintf("%s/peers=%d/n=%d", which, c.peers, c.n), func(b *testing.B) {
				ours, theirs := New(), newFlat(c.peers*c.n)
				var x rival = ours
				if which == "flat" {
					x = theirs
				}
				var held []digest.Key
				var filters []*digest.Filter
				setting, memory := time.Duration(0), 0
				for i := range c.peers {
					keys := randomKeys(random(uint64(i)), c.n)
					f := filterOf(b, g, digest.Version{Epoch: 1}, keys)
					filters = append(filters, f)
					memory += f.MemoryBytes()
					held = append(held, keys[:100]...)
					begin := cputime.Used()
					if which == "flat" {
						theirs.Set(fmt.Sprint("peer", i), f)
					} else if err := ours.Set(fmt.Sprint("peer", i), f); err != nil {
						b.Fatal(err)
					}
					setting += cputime.Used() - begin
				}
				runtime.GC()
				all := float64(c.peers * c.n)
				rng, dst := random(5), make([]Match, 0, c.peers)
				measure := func(name string, key func() digest.Key) {
					b.Run(name, func(b *testing.B) {
						for b.Loop() {
							dst = x.Lookup(dst[:0], key())
						}
						b.ReportMetric(float64(x.MemoryBytes())/all, "B/key")
						b.ReportMetric((float64(x.MemoryBytes())+float64(memory))/all, "B/key-with-filters")
						b.ReportMetric(float64(setting.Nanoseconds())/all, "set-ns/key")
					})
				}
				measure("hit", func() digest.Key { return held[rng.IntN(len(held))] })
				measure("miss", func() digest.Key { return digest.Key(rng.Uint64()) })
				measure("hot", func() digest.Key { return held[rng.IntN(1000)%len(held)] })
				b.Run("apply", func(b *testing.B) {
					flips, spent := 0, time.Duration(0)
					for b.Loop() {
						i := rng.IntN(c.peers)
						next := filterOf(b, g, digest.Version{Epoch: 1, Sequence: filters[i].Version().Sequence + 1}, randomKeys(random(uint64(rng.IntN(4))), c.n))
						d, err := digest.Diff(filters[i], next)
						if err != nil {
							b.Fatal(err)
						}
						begin := cputime.Used()
						if which == "flat" {
							theirs.Apply(fmt.Sprint("peer", i), d, next)
						} else if err := ours.Apply(fmt.Sprint("peer", i), d, next); err != nil {
							b.Fatal(err)
						}
						spent += cputime.Used() - begin
						flips += d.Len()
						filters[i] = next
					}
					b.ReportMetric(float64(spent.Nanoseconds())/float64(max(1, flips)), "cpu-ns/flip")
				})
			})
		}
	}
}
