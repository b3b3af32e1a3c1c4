package index

import (
	"slices"

	"github.com/summarycache/summarycache/digest"
)

// A full segment grows by one moreLines-th of its lines.
const moreLines = 7

// flip toggles ascending positions of a peer. It fails with errCrowd, after some of them, if they are
// not distributed as hashing does.
func (t *table) flip(place uint32, m uint64, positions []uint64) error {
	const ahead = 32
	var keys [ahead]uint64
	var lines [ahead]keyLine
	step := ^uint64(0)/m + 1 // at least as many keys as have one position
	for len(positions) > 0 {
		n := min(ahead, len(positions))
		// Loads from memory overlap: first those of segments, then of lines, then of the words and
		// bitmaps to which these refer.
		for i, p := range positions[:n] {
			keys[i] = firstKey(p, m)
			lines[i].segment = t.at(keys[i])
		}
		for i, k := range keys[:n] {
			l := &lines[i]
			l.words = l.lineAt(l.line(k))
			prefetch(&l.words[0])
		}
		for i, p := range positions[:n] {
			lines[i].prefetchFor(place, p)
		}
		for i, p := range positions[:n] {
			if err := t.toggle(place, p, m, keys[i], step); err != nil {
				return err
			}
		}
		positions = positions[n:]
	}
	return nil
}

// prefetchFor prefetches the memory outside the line that may have a position of a peer: the bitmap of
// a shared position, or the words that the last one links to.
func (l *keyLine) prefetchFor(place uint32, p uint64) {
	b := &l.shape.blocks[place]
	for _, w := range l.words {
		if w >= link {
			prefetch(&l.linked(w)[0])
		} else if w >= special && l.isShared(w, b.class, b.rest(p)) && place < 64*l.bitmapWords {
			prefetch(&l.bitmap(w)[place/64])
			return
		}
	}
}

// toggle toggles position p, whose first key is k.
func (t *table) toggle(place uint32, p, m, k, step uint64) error {
	s := t.at(k)
	line := s.line(k)
	if s.last()-k < step || s.line(k+step) != line {
		return t.toggleAll(place, p, reachOf(p, m))
	}
	by, err := s.toggle(line, place, p)
	t.codes += by
	switch {
	case err != nil:
		return err
	case by > 0 && s.used > s.limit():
		t.grow(s)
	case by == 0 && s.used > s.limit()-s.limit()/16:
		t.grow(s)
		return t.toggleAll(place, p, reachOf(p, m))
	case by == 0:
		t.refresh(s)
		return t.toggleAll(place, p, reachOf(p, m))
	}
	return nil
}

// toggleAll toggles a position in all lines that are responsible for its keys. The lines must not
// change meanwhile, or one could be toggled twice.
func (t *table) toggleAll(place uint32, p uint64, r reach) error {
	for k := r.first; ; {
		s := t.at(k)
		line, end := s.line(k), s.last()
		if line+1 < uint64(s.lines) {
			end = s.start(line+1) - 1
		}
		by, err := s.toggle(line, place, p)
		t.codes += by
		switch {
		case err != nil:
			return err
		case by == 0:
			t.refresh(s)
			continue
		case end >= r.last:
			t.growAll(r)
			return nil
		}
		k = end + 1
	}
}

// growAll grows the full ones of the segments for some keys.
func (t *table) growAll(r reach) {
	for k := r.first; ; {
		s := t.at(k)
		if s.used > s.limit() {
			t.grow(s)
		}
		if s.last() >= r.last {
			return
		}
		k = s.last() + 1
	}
}

// grow gives a segment more lines.
func (t *table) grow(s *segment) { t.rebuild(s, uint64(s.lines+s.lines/moreLines+1)) }

// replace toggles the positions in which filter by of a peer differs from old, in parts of some
// thousand positions. Between these, others may change.
func (t *table) replace(place uint32, m uint64, old, by *digest.Filter) error {
	parts := max(old.Ones(), by.Ones())/comparedAtOnce + 1
	var before, after, flips []uint64
	for i := range parts {
		first, last := m*i/parts, m*(i+1)/parts-1
		before, after = appendWithin(before[:0], old, first, last), appendWithin(after[:0], by, first, last)
		if max(len(before), len(after)) > mostInSegment {
			return errCrowd
		}
		flips = appendDiffering(flips[:0], before, after)
		if err := t.flip(place, m, flips); err != nil {
			return err
		}
		t.rested -= len(flips)
		t.rest(0)
	}
	return nil
}

const comparedAtOnce = 4096

func appendWithin(dst []uint64, f *digest.Filter, first, last uint64) []uint64 {
	dst, _ = appendBeyond(dst, f, first, last, comparedAtOnce*9/8)
	n, _ := slices.BinarySearch(dst, last+1)
	return dst[:n]
}

// appendDiffering appends the positions that only one of two ascending lists has.
func appendDiffering(dst, a, b []uint64) []uint64 {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] == b[0]:
			a, b = a[1:], b[1:]
		case a[0] < b[0]:
			dst, a = append(dst, a[0]), a[1:]
		default:
			dst, b = append(dst, b[0]), b[1:]
		}
	}
	return append(append(dst, a...), b...)
}
