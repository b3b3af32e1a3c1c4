package index

import "math/bits"

// high returns the position in [0, m) of a key.
func high(k, m uint64) uint64 {
	p, _ := bits.Mul64(k, m)
	return p
}

// A reach is the interval of keys that have one position.
type reach struct{ first, last uint64 }

func reachOf(p, m uint64) reach { return reach{firstKey(p, m), firstKey(p+1, m) - 1} }

// firstKey returns the smallest key whose position in [0, m) is p or more: p·2^64/m,
// rounded up. For p = m that is 2^64, hence 0.
func firstKey(p, m uint64) uint64 {
	if p == m {
		return 0
	}
	q, r := bits.Div64(p, 0, m)
	if r != 0 {
		q++
	}
	return q
}

// scale returns the factor from positions in [0, m) to lines, if all segments were like this one:
// 2^64·lines/m, rounded down. It is 1 if a line has few positions.
func (s *segment) scale(m uint64) uint64 {
	if lines := uint64(s.lines) << s.depth; lines < m/2 {
		scale, _ := bits.Div64(lines, 0, m)
		return scale
	}
	return 1
}

// lineOf returns the line for a position. sure means that the line has all keys of the position. The
// result is not the number of a line if the position is outside the segment.
func (s *segment) lineOf(p, scale uint64) (line uint64, sure bool) {
	line, rest := bits.Mul64(p, scale)
	// With a remainder that small, the result is exact although scale was rounded down.
	return line - s.first>>(64-s.depth)*uint64(s.lines), scale > 1 && rest < -scale-p-1
}

// linesOf returns the first and the last line for the keys of position p in [0, m). The segment must
// have such keys.
func (s *segment) linesOf(p, m, scale uint64) (first, last uint64) {
	if line, sure := s.lineOf(p, scale); sure && line < uint64(s.lines) {
		return line, line
	}
	r := reachOf(p, m)
	return s.line(max(r.first, s.first)), s.line(min(r.last, s.last()))
}
