package index

import (
	"errors"
	"math/bits"
	"sync/atomic"
)

// A segment is the part of the table for the keys with one prefix. Its lines
// divide these keys evenly. A line is one cache line: eight words of codes, in no
// order. If a line has more codes, its last word is a link to more words
// elsewhere in the segment, the last of which may be a link again.
//
// A position that many peers have can be stored once instead, as a shared position: a word with the
// common part of the peers' codes and the offset of a bitmap of peers.
//
// One writer changes a segment while any number of readers use it. A code is added or removed by
// storing one word, and further words are complete before the link to them is stored. So a reader
// never misses a code that is there before and after a change. A word keeps its purpose for the life
// of the segment. When no words are left, another segment replaces it, and the garbage collector frees
// it after the last reader.
//
// The struct takes one cache line, for which each lookup waits first.
type segment struct {
	shape *shape
	words []uint64 // lineWords for each line, then what is linked to, and bitmaps
	first uint64   // the smallest key
	lines uint32

	bitmapWords uint32 // of each bitmap
	depth       uint8  // bits of the prefix

	// The writer's:
	codes int32 // with the ones in bitmaps
	used  int32 // fields of the lines that are not free
	free  int32 // offset of the free words
}

const lineWords = 8

// A word with the top bit set has no codes. If the next bit is set too, it is a link: the lower half is
// the offset of the words, the rest their number. Otherwise it is a shared position: from the lowest
// bit, the common part of the codes, the class, and the offset of the bitmap.
const (
	special   = 1 << 63
	link      = special | 1<<62
	classBits = 6 // positions of later classes are not shared
)

func linkTo(at, n int) uint64 { return link | uint64(n)<<32 | uint64(at) }

// linked returns the words of a link.
func (s *segment) linked(word uint64) []uint64 {
	at, n := int(uint32(word)), int(word&^link>>32)
	return s.words[at : at+n : at+n]
}

func (s *segment) sharedWord(class int, rest uint64, at int) uint64 {
	return special | rest | (uint64(class)|uint64(at)<<classBits)<<s.shape.width
}

// isShared reports whether word, a shared position, is that of class and rest.
func (s *segment) isShared(word uint64, class int, rest uint64) bool {
	const mask = 1<<classBits - 1
	return (word^(rest|uint64(class)<<s.shape.width))&(mask<<s.shape.width|s.shape.codeMask()) == 0
}

// classOf returns the class of a shared position.
func (s *segment) classOf(word uint64) int {
	return int(word >> s.shape.width & (1<<classBits - 1))
}

// bitmap returns the peers of a shared position, by place.
func (s *segment) bitmap(word uint64) []uint64 {
	at, n := int(word&^special>>(s.shape.width+classBits)), int(s.bitmapWords)
	return s.words[at : at+n : at+n]
}

// last returns the segment's largest key.
func (s *segment) last() uint64 { return s.first | ^uint64(0)>>s.depth }

// line returns the line that is responsible for k.
func (s *segment) line(k uint64) uint64 {
	line, _ := bits.Mul64(k<<s.depth, uint64(s.lines))
	return line
}

// start returns the first key of a line.
func (s *segment) start(line uint64) uint64 {
	if line == 0 {
		return s.first
	}
	q, r := bits.Div64(line, 0, uint64(s.lines))
	if r != 0 {
		q++
	}
	return s.first + (q+1<<s.depth-1)>>s.depth
}

// lineAt returns the words of a line.
func (s *segment) lineAt(line uint64) []uint64 {
	at := int(line) * lineWords
	return s.words[at : at+lineWords : at+lineWords]
}

// maxPerLine is a number of positions of one peer that a line never gets by chance: two hundred standard
// deviations above the mean.
const maxPerLine = 512

// errCrowd: the positions are not hashed, since hashing does not put so many into a line.
var errCrowd = errors.New("index: a line has more positions of a peer than hashing gives")

// toggle adds position p of a peer to a line that lacks it, and removes it from one that has it; by is
// 1 or -1. If it is 0, nothing has changed: too few words are left or, with errCrowd, the line has more
// than maxPerLine of the peer's positions.
func (s *segment) toggle(line uint64, place uint32, p uint64) (by int, err error) {
	b := &s.shape.blocks[place]
	code := b.code(p)
	words, length := s.lineAt(line), 0
	var free *uint64 // the first word with a free field
	freeInLine := false
next:
	for i, w := range words {
		switch {
		case w >= link:
			length += len(words)
			words = s.linked(w)
			goto next
		case w >= special:
			if place < 64*s.bitmapWords && s.isShared(w, b.class, b.rest(p)) {
				return s.toggleBit(s.bitmap(w), place), nil
			}
		default:
			if tops := s.shape.equal(w, code); tops != 0 {
				atomic.StoreUint64(&words[i], w&^(s.shape.codeMask()<<s.shape.field(tops)))
				s.count(-1, length == 0)
				return -1, nil
			}
			if free == nil && s.shape.zeros(w) != 0 {
				free, freeInLine = &words[i], length == 0
			}
		}
	}
	if free != nil {
		w := *free
		atomic.StoreUint64(free, w|code<<s.shape.field(s.shape.zeros(w)))
		s.count(1, freeInLine)
		return 1, nil
	}
	if length*int(s.shape.fields) > maxPerLine && s.own(line, b) > maxPerLine {
		return 0, errCrowd
	}
	if !s.extend(words, code, length) {
		return 0, nil
	}
	s.codes++
	return 1, nil
}

// insert adds position p of a peer, which has block b, to a line that lacks it. It returns false,
// without a change, if that needs more words than are left.
func (s *segment) insert(line uint64, place uint32, b *block, p uint64) bool {
	code := b.code(p)
	words, length := s.lineAt(line), 0
next:
	for i, w := range words {
		switch {
		case w < special:
			if tops := s.shape.zeros(w); tops != 0 {
				// Shared positions come before all words with codes.
				atomic.StoreUint64(&words[i], w|code<<s.shape.field(tops))
				s.count(1, length == 0)
				return true
			}
		case w >= link:
			length += len(words)
			words = s.linked(w)
			goto next
		case place < 64*s.bitmapWords && s.isShared(w, b.class, b.rest(p)):
			s.toggleBit(s.bitmap(w), place)
			return true
		}
	}
	if !s.extend(words, code, length) {
		return false
	}
	s.codes++
	return true
}

// count counts a code that was added or removed, in a field of the line itself or in linked words.
func (s *segment) count(by int32, inLine bool) {
	s.codes += by
	if inLine {
		s.used += by
	}
}

// limit returns how many fields of the lines may be in use before the segment gets more lines instead
// of more links.
func (s *segment) limit() int32 {
	return int32(fillLines * float64(s.lines*lineWords*uint32(s.shape.fields)))
}

func (s *segment) toggleBit(bitmap []uint64, place uint32) (by int) {
	w := bitmap[place/64] ^ 1<<(place%64)
	atomic.StoreUint64(&bitmap[place/64], w)
	by = int(w>>(place%64)&1)*2 - 1
	s.codes += int32(by)
	return by
}

// extend replaces the last of words by a link to more words, which have that word and code. words end a
// line, with length words before them.
func (s *segment) extend(words []uint64, code uint64, length int) bool {
	size, at := max(2, length/3), int(s.free)
	if at+size > len(s.words) {
		return false
	}
	last := &words[len(words)-1]
	more := s.words[at : at+size]
	more[0], more[1] = *last, code
	atomic.StoreUint64(last, linkTo(at, size))
	s.free += int32(size)
	return true
}

// own returns the number of codes of a block in a line.
func (s *segment) own(line uint64, b *block) (n int) {
	words := s.lineAt(line)
next:
	for _, w := range words {
		if w >= link {
			words = s.linked(w)
			goto next
		}
		for ; w < special && w != 0; w >>= s.shape.width {
			if (w&s.shape.codeMask())>>b.low == b.base>>b.low {
				n++
			}
		}
	}
	return n
}
