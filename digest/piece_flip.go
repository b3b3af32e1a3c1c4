package digest

// changes are what flips do to a set.
type changes struct {
	sets  uint64 // how many of them set a position
	state uint64 // what they add to the state
}

func (c *changes) note(p uint64, found bool) {
	if found {
		c.state -= stateOf(p)
	} else {
		c.state += stateOf(p)
		c.sets++
	}
}

// A place is where a position stands in a piece, or would: how many are below it,
// and in the low bit whether it is there.
type place uint64

func placeOf(rank uint64, found bool) place {
	if found {
		return place(rank<<1 | 1)
	}
	return place(rank << 1)
}

func (p place) rank() uint64 { return uint64(p) >> 1 }
func (p place) found() bool  { return p&1 != 0 }

// places appends where ascending positions of one piece stand. From many on it goes
// through the piece, which may be crowded.
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

// inOnePiece returns the piece of the first of ascending positions, and how many are in
// it.
func (s *pieces) inOnePiece(positions []uint64) (i uint64, n int) {
	i, _ = s.at(positions[0])
	for end := (i + 1) * s.span(); n < len(positions) && positions[n] < end; n++ {
	}
	return i, n
}

// flip returns the set that differs from s by flips, which ascend, and shares with
// it all pieces without one. What it allocates is the root, and for each flip at
// most a node and a piece.
func (s *pieces) flip(flips []uint64) (next pieces, c changes) {
	next = *s
	next.nodes = append([]nodeRef(nil), s.nodes...)
	first, copied := -1, -1
	var buffer [64]place
	places := buffer[:0]
	for len(flips) > 0 {
		i, n := s.inOnePiece(flips)
		if n < len(flips) {
			s.askNext(flips[n])
		}
		at := int(i / fanOut)
		if at != copied {
			if copied >= 0 {
				next.nodes[copied].node.sum()
			} else {
				first = at
			}
			own := *s.nodes[at].node
			next.nodes[at].node, copied = &own, at
		}
		e := &next.nodes[at].node[i%fanOut]
		old := *e
		if s.bitmap {
			*e = s.flipBitmap(&old, flips[:n], &c)
		} else {
			places = s.places(places[:0], i, flips[:n])
			for j, p := range flips[:n] {
				c.note(p, places[j].found())
			}
			*e = s.flipList(&old, flips[:n], places)
		}
		next.held += s.holds(e) - s.holds(&old)
		flips = flips[n:]
	}
	if copied >= 0 {
		next.nodes[copied].node.sum()
		next.sum(first)
	}
	return next, c
}

// askNext makes memory fetch the piece of p.
func (s *pieces) askNext(p uint64) {
	i, _ := s.at(p)
	s.ask(i)
}

func (l *form) flipBitmap(old *piece, flips []uint64, c *changes) piece {
	words := append([]uint64(nil), l.words(old)...)
	for _, p := range flips {
		_, at := l.at(p)
		c.note(p, words[at>>6]>>(at&63)&1 != 0)
		words[at>>6] ^= 1 << (at & 63)
	}
	return l.newBitmap(words)
}

// flipList returns the piece that differs from old by flips, which stand at places.
// Between two flips both halves are copied as they are, shifted by as many entries
// as came before.
func (l *form) flipList(old *piece, flips []uint64, places []place) piece {
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
	var index, mark uint64   // entries and bits of highs that were read
	var next, written uint64 // and written
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

// putBits writes a value whose bits are zero in dst, which has a word to spare.
func putBits(dst []uint64, at, value uint64) {
	dst[at>>6] |= value << (at & 63)
	dst[at>>6+1] |= value >> 1 >> (63 - at&63)
}

// rewrite returns the set that differs from s by flips, laid out for so many
// positions.
func (s *pieces) rewrite(flips []uint64, ones uint64) (next pieces, c changes) {
	b := newPieceBuilder(formFor(s.bits, ones))
	from := s.cursor()
	var merged [64]uint64
	n := 0
	put := func(p uint64) {
		if n == len(merged) {
			b.add(merged[:])
			n = 0
		}
		merged[n] = p
		n++
	}
	p, more := from.next()
	for _, q := range flips {
		for more && p < q {
			put(p)
			p, more = from.next()
		}
		found := more && p == q
		if c.note(q, found); found {
			p, more = from.next()
		} else {
			put(q)
		}
	}
	for more {
		put(p)
		p, more = from.next()
	}
	b.add(merged[:n])
	return b.finish(), c
}

// diff returns the positions in which two sets differ. Of sets that share pieces it
// looks at the others only.
func diff(a, b *pieces) (flips []uint64) {
	if a.form != b.form {
		return diffCursors(nil, a.cursor(), b.cursor())
	}
	for at := range a.nodes {
		if a.nodes[at].node == b.nodes[at].node {
			continue
		}
		for j := range a.nodes[at].node {
			if a.nodes[at].node[j].words == b.nodes[at].node[j].words {
				continue
			}
			i := uint64(at)*fanOut + uint64(j)
			flips = diffCursors(flips, a.cursorOf(i), b.cursorOf(i))
		}
	}
	return flips
}

// diffCursors appends what one of two cursors comes across only.
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
