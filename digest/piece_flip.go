package digest

import "slices"

// changes says what flips do to a set.
type changes struct {
	sets  uint64 // flips that set a position
	state uint64 // what all flips add to the state
}

func (c *changes) note(p uint64, found bool) {
	if found {
		c.state -= stateOf(p)
	} else {
		c.state += stateOf(p)
		c.sets++
	}
}

// A place says where a position is in a piece, or would be: the low bit says whether it is
// there, and the rest how many positions are below it.
type place uint64

func placeOf(rank uint64, found bool) place {
	if found {
		return place(rank<<1 | 1)
	}
	return place(rank << 1)
}

func (p place) rank() uint64 { return uint64(p) >> 1 }
func (p place) found() bool  { return p&1 != 0 }

// places appends the places of ascending positions of one piece. For many positions it visits
// the whole piece once, since a piece may be crowded.
func (s *pieces) places(dst []place, i uint64, positions []uint64) []place {
	if len(positions) < selectAhead {
		e := s.piece(i)
		for _, p := range positions {
			_, bucket := s.at(p)
			dst = append(dst, placeOf(s.find(e, bucket, p&(1<<s.shift-1))))
		}
		return dst
	}
	c, rank := s.cursorOf(i), uint64(0)
	q, more := c.next()
	for _, p := range positions {
		for ; more && q < p; rank++ {
			q, more = c.next()
		}
		dst = append(dst, placeOf(rank, more && q == p))
	}
	return dst
}

// inOnePiece returns the piece of the first of ascending positions, and how many of them are in
// it.
func (s *pieces) inOnePiece(positions []uint64) (i uint64, n int) {
	i, _ = s.at(positions[0])
	for end := (i + 1) * s.span(); n < len(positions) && positions[n] < end; n++ {
	}
	return i, n
}

// prefetchAhead is how many flips ahead pieces are prefetched.
const prefetchAhead = 8

// flip returns the set that differs from s by ascending flips. It shares with s all pieces
// without a flip. It allocates the root, and for each flip at most a branch, a node and a
// piece.
func (s *pieces) flip(flips []uint64) (next pieces, c changes) {
	next = *s
	next.root = append([]branchRef(nil), s.root...)
	var buffer [64]place
	places := buffer[:0]
	counted, more := 0, uint64(0) // branches whose before is final, and what the pieces so far add to the others'
	for len(flips) > 0 {
		i, n := s.inOnePiece(flips)
		for at := int(i / (nodeFan * branchFan)); counted < at; {
			counted++
			next.root[counted].before += more
		}
		if n+prefetchAhead < len(flips) {
			later, _ := s.at(flips[n+prefetchAhead])
			s.prefetch(later)
		}
		old, e := s.piece(i), piece{}
		if s.bitmap {
			e = s.flipBitmap(old, flips[:n], &c)
		} else {
			places = s.places(places[:0], i, flips[:n])
			for j, p := range flips[:n] {
				c.note(p, places[j].found())
			}
			e = s.flipList(old, flips[:n], places)
		}
		next.own(s, i/nodeFan)
		next.put(i, e)
		more += uint64(e.ones) - uint64(old.ones)
		next.held += s.holds(e) - s.holds(old)
		flips = flips[n:]
	}
	for counted++; counted < len(next.root); counted++ {
		next.root[counted].before += more
	}
	return next, c
}

// own copies the branch and the node at an index if next still shares them with s.
func (next *pieces) own(s *pieces, at uint64) {
	if r := &next.root[at/branchFan]; r.branch == s.root[at/branchFan].branch {
		own := *r.branch
		r.branch = &own
	}
	if n := next.node(at); *n == *s.node(at) {
		own := **n
		*n = &own
	}
}

func (l *form) flipBitmap(old piece, flips []uint64, c *changes) piece {
	words := append([]uint64(nil), l.words(old)...)
	for _, p := range flips {
		_, at := l.at(p)
		c.note(p, words[at>>6]>>(at&63)&1 != 0)
		words[at>>6] ^= 1 << (at & 63)
	}
	return l.newBitmap(words)
}

// flipList returns the piece that differs from old by flips, whose places are given. Between
// two flips, low bits and high parts are copied unchanged, shifted by the entries that were
// added or removed before.
func (l *form) flipList(old piece, flips []uint64, places []place) piece {
	count := uint64(old.ones)
	n := count
	for _, p := range places {
		n += 1 - uint64(p&1)*2
	}
	if n == 0 {
		return piece{words: &zeroWords[0]}
	}
	words, from := make([]uint64, l.length(n)), l.words(old)
	highs, fromHighs := words[l.lowWords(n):], from[l.lowWords(count):]
	width := uint64(l.shift)
	var index, mark uint64   // entries, and bits of highs, that were read
	var next, written uint64 // entries, and bits of highs, that were written
	for i, p := range flips {
		_, bucket := l.at(p)
		rank := places[i].rank()
		until := bucket + rank
		copyBits(words, next*width, from, index*width, (rank-index)*width)
		copyBits(highs, written, fromHighs, mark, until-mark)
		next += rank - index
		written += until - mark
		index, mark = rank, until
		if places[i].found() {
			index++
			mark++
			continue
		}
		putBits(words, next*width, p&(1<<width-1))
		highs[written>>6] |= 1 << (written & 63)
		next++
		written++
	}
	copyBits(words, next*width, from, index*width, (count-index)*width)
	copyBits(highs, written, fromHighs, mark, count+l.buckets-mark)
	return piece{words: &words[0], ones: uint32(n)}
}

// putBits writes a value at bit at of dst. The bits must be zero, and dst must have a word
// after them.
func putBits(dst []uint64, at, value uint64) {
	dst[at>>6] |= value << (at & 63)
	dst[at>>6+1] |= value >> 1 >> (63 - at&63)
}

// rewrite returns the set that differs from s by flips, in the form for so many positions.
func (s *pieces) rewrite(flips []uint64, ones uint64) (next pieces, c changes) {
	b := newPieceBuilder(formFor(s.bits, ones))
	var buffer []uint64
	from := s.cursor()
	for some := from.batch(); len(flips) > 0 || len(some) > 0; some = from.batch() {
		n := len(flips)
		if len(some) > 0 {
			n, _ = slices.BinarySearch(flips, some[len(some)-1]+1)
		}
		for _, p := range flips[:n] {
			_, found := slices.BinarySearch(some, p)
			c.note(p, found)
		}
		buffer = inOne(buffer[:0], some, flips[:n])
		b.add(buffer)
		flips = flips[n:]
	}
	return b.finish(), c
}

// diff returns the positions in which two sets differ. It skips the pieces that both share.
func diff(a, b *pieces) (flips []uint64) {
	if a.form != b.form {
		return diffCursors(nil, a.cursor(), b.cursor())
	}
	for i := uint64(0); i < a.count; i++ {
		switch at := i / nodeFan; {
		case a.root[at/branchFan].branch == b.root[at/branchFan].branch:
			i |= branchFan*nodeFan - 1 // the last of the branch
		case *a.node(at) == *b.node(at):
			i |= nodeFan - 1
		case a.piece(i).words != b.piece(i).words:
			flips = diffCursors(flips, a.cursorOf(i), b.cursorOf(i))
		}
	}
	return flips
}

// diffCursors appends the positions that exactly one of two cursors visits.
func diffCursors(dst []uint64, a, b cursor) []uint64 {
	p, more := a.next()
	q, moreB := b.next()
	for more || moreB {
		switch {
		case !moreB || more && p < q:
			dst = append(dst, p)
			p, more = a.next()
		case !more || q < p:
			dst = append(dst, q)
			q, moreB = b.next()
		default:
			p, more = a.next()
			q, moreB = b.next()
		}
	}
	return dst
}
