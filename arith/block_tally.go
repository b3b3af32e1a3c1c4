package arith

import "math/bits"

// tally is what one pass over an array of bits finds out, before the plan is
// made that decides about chunks: how many ones there are, up to each of some
// places; and where there are few, which lines of the array have any, so that
// the others need not be read again. Reading is most of the work then.
type tally struct {
	each   uint64 // words between two entries of before, a multiple of line
	before [tallies + 1]uint64

	few   bool
	line  uint64 // words
	lines [tallyLines / 8]uint8
}

const (
	tallies    = 256
	tallyLines = 1 << 18
	// Ones are few if they are fewer than one position in so many: of more, most lines have any.
	fewOnes = 2500
)

func (t *tally) count(words []uint64) (ones uint64) {
	n := uint64(len(words))
	t.line = 8
	for t.line*tallyLines < n {
		t.line *= 2
	}
	t.each = (n/tallies/t.line + 1) * t.line
	t.few = true
	for i := range t.before {
		t.before[i] = ones
		from := min(uint64(i)*t.each, n)
		now := words[from:min(from+t.each, n)]
		if t.few {
			ones += t.mark(now, from/t.line)
			t.few = ones*fewOnes < 64*(from+t.each)
		} else {
			ones += popcount(now)
		}
	}
	return ones
}

// mark counts the ones in words, which begin at a line, and notes the lines.
func (t *tally) mark(words []uint64, line uint64) (ones uint64) {
	for ; len(words) > 0; line++ {
		now := words[:min(t.line, uint64(len(words)))]
		words = words[len(now):]
		any := uint64(0)
		if len(now) == 8 {
			any = now[0] | now[1] | now[2] | now[3] | now[4] | now[5] | now[6] | now[7]
		} else {
			for _, w := range now {
				any |= w
			}
		}
		if any != 0 {
			ones += popcount(now)
			t.lines[line/8] |= 1 << (line % 8)
		}
	}
	return ones
}

// below returns how many ones there are in the first n words.
func (t *tally) below(words []uint64, n uint64) uint64 {
	i := n / t.each
	return t.before[i] + popcount(words[i*t.each:n])
}

// encodeFew codes the gaps of the array of bits from the word at from to before the
// one at to, in which t knows the lines that have ones.
func (e *chunkEncoder) encodeFew(p *bitPacker, words []uint64, t *tally, from, to uint64) {
	var found [batch + 64]uint64 // filled from the end
	n := len(found)
	for line := (to - 1) / t.line; line+1 > from/t.line; line-- {
		if t.lines[line/8]>>(line%8)&1 == 0 {
			if t.lines[line/8] == 0 {
				line &^= 7
			}
			continue
		}
		for i := min(to, (line+1)*t.line); i > max(from, line*t.line); i-- {
			for w := words[i-1]; w != 0; {
				bit := uint(bits.Len64(w)) - 1
				w &^= 1 << bit
				n--
				found[n] = 64*(i-1) + uint64(bit)
			}
			if n < 64 {
				e.encodeGaps(p, found[n:])
				found[len(found)-1] = found[n]
				n = len(found) - 1
			}
		}
	}
	e.encodeGaps(p, found[n:])
	e.encodeGap(p, found[n]-64*from)
}
