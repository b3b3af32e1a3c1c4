package arith

import (
	"math"
	"slices"
)

func decodeBlockBitmap(words []uint64, src []byte, m, x uint64) error {
	p := planBlocks(m, x)
	if p.chunks == 0 {
		clear(words)
		if p.flip {
			invert(words, 0, m)
		}
		return none(src)
	}
	return decodeBlocks(&p, src, blockTarget{words: words})
}

func decodeBlockSet(dst []uint64, src []byte, m, x uint64) ([]uint64, error) {
	p := planBlocks(m, x)
	before := len(dst)
	if x > math.MaxInt/8 {
		return dst, ErrCorrupt // no slice is so long
	}
	dst = slices.Grow(dst, int(x))[:before+int(x)]
	var err error
	if p.chunks == 0 {
		if err = none(src); p.flip {
			s := filler{dst: dst[before:]}
			s.run(m)
		}
	} else {
		err = decodeBlocks(&p, src, blockTarget{positions: dst[before:]})
	}
	if err != nil {
		return dst[:before], err
	}
	return dst, nil
}

// blockTarget is where a set is decoded to: one of its shapes.
type blockTarget struct {
	words     []uint64
	positions []uint64
}

// decode decodes chunk i of src.
func (t *blockTarget) decode(d *chunkDecoder, src []byte, parts []part, i int) error {
	p := &parts[i]
	from, to := d.plan.chunk(i)
	code := src[p.at : p.at+p.length]
	var err error
	if t.words != nil {
		err = d.bitmap(t.words[from/64:wordsFor(to)], code, from, to, p.count)
	} else {
		end := p.before + d.plan.present(i, p.count)
		err = d.set(t.positions[p.before:end:end], code, from, to, p.count)
	}
	if err == ErrTruncated && i < len(parts)-1 {
		err = ErrCorrupt // the directory says how long this chunk is
	}
	return err
}

// decodeBlocks decodes all chunks. How many there are follows from counts that
// checkCounts has compared with the length of src.
func decodeBlocks(p *blockPlan, src []byte, t blockTarget) error {
	var local [onStack]part
	parts := local[:]
	if p.chunks > onStack {
		parts = make([]part, p.chunks)
	}
	parts = parts[:p.chunks]
	if err := directory(src, p, parts); err != nil {
		return err
	}
	var d chunkDecoder
	d.init(p)
	for i := range parts {
		if err := t.decode(&d, src, parts, i); err != nil {
			return err
		}
	}
	return nil
}
