package index

import "sync/atomic"

// A table has the positions of all peers with sparse filters. It divides the space of keys, not of
// positions: a position in [0, m) is an interval of keys, so peers with any m can share the table
// exactly. A line has codes for the positions of all peers that the line's keys can have. If the keys
// of a position belong to several lines, its code is in each.
//
// Two other layouts were measured (sim/HISTORY.md). Rows of bits, one bit per peer and position,
// take as much memory with many peers, and several times as long; dense filters get them. A hash table
// from positions to peers takes twice the memory, and positions of many peers slow down their
// neighbours.
//
// The table grows by segments: a full one is replaced by one with more lines or by two, so that the
// memory and the time for rewriting all of it are never needed at once.
type table struct {
	dir atomic.Pointer[directory]

	// The writer's:
	shape    *shape  // of all segments, except while they change
	owners   []owner // by place; bits 0 means none
	gone     []bool  // by place: the peer was deleted, and its codes are to be dropped
	codes    int
	dead     int // of codes, those of deleted peers
	words    int // in all segments
	segments int
	planned  int    // codes when the shape was last planned
	work     int    // ever done to add peers
	rested   int    // work at the last rest, less other work since
	pause    func() // lets others use the index; nil = not now
	sweep    sweep
	migrator migrator

	freePlaces []uint32 // that no peer has

	maxLines    uint64 // in a segment
	fewCodes    int    // up to this many dead codes,
	fewRemovals int    // and this many removals, are not worth a sweep
}

// A directory finds a key's segment by its leading bits. Segments with shorter
// prefixes are in it several times.
type directory struct {
	depth    uint8
	segments []atomic.Pointer[segment]
}

func (d *directory) at(k uint64) *segment { return d.segments[k>>(64-d.depth)].Load() }

// init makes an empty table.
func (t *table) init() {
	t.maxLines, t.fewCodes, t.fewRemovals = 4096, 1<<14, 64
	t.reset()
}

// reset forgets all codes.
func (t *table) reset() {
	t.shape = newShape(plan{width: widths[0], granule: widths[0] - 6, density: 1}, nil)
	t.owners, t.gone = nil, nil
	t.codes, t.dead, t.planned = 0, 0, 0
	t.sweep = sweep{}
	s := &segment{shape: t.shape, lines: 1, words: make([]uint64, lineWords), free: lineWords}
	t.words, t.segments = len(s.words), 1
	d := &directory{segments: make([]atomic.Pointer[segment], 1)}
	d.segments[0].Store(s)
	t.dir.Store(d)
}

// at returns the segment of a key.
func (t *table) at(k uint64) *segment { return t.dir.Load().at(k) }

// each calls f with all segments, in order; f may replace the segment.
func (t *table) each(f func(*segment)) {
	for k := uint64(0); ; {
		s := t.at(k)
		f(s)
		if s.last() == ^uint64(0) {
			return
		}
		k = s.last() + 1
	}
}

// admit prepares the table for a peer with ones positions in [0, m).
func (t *table) admit(place uint32, m, ones uint64) {
	for len(t.owners) <= int(place) {
		t.owners = append(t.owners, owner{})
		t.gone = append(t.gone, false)
	}
	t.owners[place] = owner{place, m}
	admitted := t.shape.admit(t.owners[place])
	codes := t.codes + int(ones)
	if admitted && codes < t.planned/4*5 {
		return
	}
	t.planned = codes
	fields := max(t.fields()+ones, uint64(float64(codes)/fillLines))
	p := planFor(t.present(), fields, t.shape.width)
	if !admitted || p.width != t.shape.width {
		t.reshape(p)
	}
}

// fields returns the number of fields in all lines.
func (t *table) fields() (n uint64) {
	t.each(func(s *segment) { n += uint64(s.lines*lineWords) * uint64(s.shape.fields) })
	return n
}

func (t *table) present() (all []owner) {
	for _, o := range t.owners {
		if o.bits != 0 {
			all = append(all, o)
		}
	}
	return all
}

// reshape rewrites all segments with another shape. Others may change their peers meanwhile, in segments of
// either shape.
func (t *table) reshape(p plan) {
	t.shape = newShape(p, t.present())
	for t.sweep.begin(); t.sweep.runs; {
		t.sweepNext()
	}
}

// How full lines that had too much room are made, as a share of the limit at which they grow.
const (
	roomy = 0.85
	tight = 0.97 // near the memory limit
)

// fit returns how many lines a segment should have.
func (t *table) fit(s *segment, full float64) uint64 {
	lines := (uint64(s.lines)*uint64(s.shape.fields)-1)/uint64(t.shape.fields) + 1
	if used := t.live() * float64(s.used) / float64(s.limit()); used < full-0.1 {
		lines = uint64(float64(lines)*used/full) + 1
	}
	return max(lines, (t.shape.density-1)>>s.depth+1)
}

// live estimates the share of the table's codes that are not of deleted peers: 0 to 1.
func (t *table) live() float64 { return 1 - min(1, float64(t.dead)/float64(max(1, t.codes))) }

// mostLines bounds a segment to a part of the table that takes little memory and time to rewrite.
func (t *table) mostLines() uint64 {
	return min(t.maxLines, max(256, uint64(t.words/lineWords/32)))
}

// rebuild rewrites a segment with this many lines, as several segments if they are too many.
func (t *table) rebuild(s *segment, lines uint64) { t.rebuildWith(s, lines, addition{}) }

// refresh rewrites a segment with as many lines, and with free words.
func (t *table) refresh(s *segment) *segment {
	if s.shape != t.shape {
		t.rebuild(s, uint64(s.lines))
		return t.at(s.first)
	}
	by := t.migrator.build(s, t.shape, s.first, s.depth, uint64(s.lines), t.gone, addition{})
	t.publish(s, by)
	return by
}

// rebuildWith is rebuild with positions to add to the segment.
func (t *table) rebuildWith(s *segment, lines uint64, added addition) {
	if s.shape != t.shape {
		lines = max(lines, t.fit(s, roomy)) // with fewer, two positions of a peer could have one code
	}
	deeper := uint8(0)
	for (lines-1)>>deeper+1 > t.mostLines() {
		deeper++
	}
	lines = (lines-1)>>deeper + 1
	var by []*segment
	for i := range uint64(1) << deeper {
		depth := s.depth + deeper
		first := s.first | i<<(64-depth)
		by = append(by, t.migrator.build(s, t.shape, first, depth, lines, t.gone, added.within(first, first|^uint64(0)>>depth)))
	}
	t.publish(s, by...)
}

// publish replaces a segment by others.
func (t *table) publish(old *segment, by ...*segment) {
	t.words -= len(old.words)
	t.codes -= int(old.codes)
	t.segments--
	for _, s := range by {
		t.words += len(s.words)
		t.codes += int(s.codes)
		t.segments++
		d := t.dir.Load()
		for s.depth > d.depth {
			d = d.double()
		}
		t.dir.Store(d)
		at := s.first >> (64 - d.depth)
		for i := range uint64(1) << (d.depth - s.depth) {
			d.segments[at+i].Store(s)
		}
	}
}

func (d *directory) double() *directory {
	next := &directory{depth: d.depth + 1, segments: make([]atomic.Pointer[segment], 2*len(d.segments))}
	for i := range next.segments {
		next.segments[i].Store(d.segments[i/2].Load())
	}
	return next
}

func (t *table) bytes() int {
	return 8*t.words + 64*t.segments + 8*len(t.dir.Load().segments) + t.shape.bytes() + t.migrator.bytes() +
		17*cap(t.owners)
}
