package arith

// chunkDecoder decodes the chunks of one set.
type chunkDecoder struct {
	decodeTable
	plan blockPlan
	jump uint64           // gaps: positions that a jump skips
	kept [maxSymbols]bool // blocks: the groups that must not be escaped
}

func (d *chunkDecoder) init(p *blockPlan) {
	d.plan = *p
	if p.y == 0 {
		return
	}
	var mod model
	p.model(&mod, func(ordinal int, keep bool) { d.kept[ordinal] = keep })
	d.build(&mod)
	if p.form == gaps {
		d.buildGaps(&mod)
		d.jump = mod.symbols[mod.n-1].base
	}
}

// bitmap decodes the chunk [from, to) with count members into words, which
// begin at from.
func (d *chunkDecoder) bitmap(words []uint64, src []byte, from, to, count uint64) error {
	var err error
	switch {
	case count == 0:
		clear(words)
		err = none(src)
	case d.plan.form == gaps:
		err = d.gapsToWords(words, src, to-from, count)
	default:
		err = d.blocksToWords(words, src, to-from, count)
	}
	if d.plan.flip {
		invert(words, from, to)
	}
	return err
}

// set passes the positions of the chunk [from, to), which has count members, to t.
func (d *chunkDecoder) set(t *taker, src []byte, from, to, count uint64) error {
	t.next = from
	switch {
	case count == 0:
		if d.plan.flip {
			t.run(to)
		}
		return none(src)
	case d.plan.form == gaps:
		return d.gapsToSet(t, src, from, to, count)
	default:
		return d.blocksToSet(t, src, from, to, count)
	}
}

// none checks a chunk without members, which must have no bytes.
func none(src []byte) error {
	if len(src) > 0 {
		return ErrCorrupt
	}
	return nil
}

// chunkReader is a chunk being decoded.
type chunkReader struct {
	bitReader
	count  uint64 // members still to come
	span   uint64 // positions
	place  uint64 // gaps: where the next one begins, relative to the chunk
	values [batch]uint64
}

// open starts to decode a chunk of span positions with count members, at least one.
func (d *chunkDecoder) open(r *chunkReader, src []byte, span, count uint64) error {
	r.count, r.span = count, span
	if !r.reset(src, &d.decodeTable) {
		return ErrCorrupt
	}
	return nil
}

// end checks that the chunk ends here.
func (r *chunkReader) end() error {
	if r.count != 0 || !r.done() {
		return ErrCorrupt
	}
	return nil
}

// members returns the next members, relative to the chunk's first position. All are within the
// chunk; after jumps there may be none.
func (d *chunkDecoder) members(r *chunkReader) (found []uint64, err error) {
	out := r.values[:min(r.count, batch)]
	n, place, once := 0, r.place, len(out)
	if d.long <= 28 {
		once = 1
	}
	for range batch {
		if once == 1 {
			if k := r.gaps(out[n:], &d.decodeTable, place); k > 0 {
				n += k
				place = out[n-1] + 1
			}
		}
		if n == len(out) {
			break
		}
		// The loop over plain gaps does not handle jumps and the end of src.
		rest := out[n:min(n+once, len(out))]
		r.bitReader.values(rest, &d.decodeTable)
		for _, gap := range rest {
			place += gap
			if gap < d.jump {
				out[n] = place
				n++
				place++
			}
		}
		if r.overrun() {
			return nil, ErrTruncated
		}
		if place > r.span {
			return nil, ErrCorrupt
		}
	}
	if place > r.span {
		return nil, ErrCorrupt
	}
	r.place = place
	r.count -= uint64(n)
	return out[:n], nil
}

func (d *chunkDecoder) gapsToWords(words []uint64, src []byte, span, count uint64) error {
	var r chunkReader
	if err := d.open(&r, src, span, count); err != nil {
		return err
	}
	cleared := uint64(0)
	for r.count > 0 {
		found, err := d.members(&r)
		if err != nil {
			return err
		}
		// The words are cleared here, so that each is touched only once.
		clear(words[cleared:wordsFor(r.place)])
		cleared = wordsFor(r.place)
		insert(words, found)
	}
	clear(words[cleared:])
	return r.end()
}

func (d *chunkDecoder) gapsToSet(t *taker, src []byte, from, to, count uint64) error {
	var r chunkReader
	if err := d.open(&r, src, to-from, count); err != nil {
		return err
	}
	for r.count > 0 {
		found, err := d.members(&r)
		if err != nil {
			return err
		}
		if !d.plan.flip {
			t.all(found, from)
			continue
		}
		for _, p := range found {
			t.skip(from + p)
		}
	}
	if d.plan.flip {
		t.run(to)
	}
	return r.end()
}

// blocks decodes the next blocks into words, at most wordBatch of them.
func (d *chunkDecoder) blocks(r *chunkReader, words []uint64) error {
	ok := false
	if d.plan.form == blocks16 {
		r.bitReader.values(r.values[:4*len(words)], &d.decodeTable)
		ok = from16(words, r.values[:], &d.kept)
	} else {
		r.bitReader.values(r.values[:2*len(words)], &d.decodeTable)
		ok = from32(words, r.values[:], &d.kept)
	}
	if r.overrun() {
		return ErrTruncated
	}
	ones := popcount(words)
	if !ok || ones > r.count {
		return ErrCorrupt
	}
	r.count -= ones
	return nil
}

func (d *chunkDecoder) blocksToWords(words []uint64, src []byte, span, count uint64) error {
	fillTables()
	var r chunkReader
	if err := d.open(&r, src, span, count); err != nil {
		return err
	}
	for i := 0; i < len(words); i += wordBatch {
		if err := d.blocks(&r, words[i:min(i+wordBatch, len(words))]); err != nil {
			return err
		}
	}
	if stray(words, span) {
		return ErrCorrupt
	}
	return r.end()
}

func (d *chunkDecoder) blocksToSet(t *taker, src []byte, from, to, count uint64) error {
	fillTables()
	var r chunkReader
	if err := d.open(&r, src, to-from, count); err != nil {
		return err
	}
	var words [wordBatch]uint64
	for at := from; at < to; at += 64 * wordBatch {
		now := words[:min(wordBatch, wordsFor(to-at))]
		if err := d.blocks(&r, now); err != nil {
			return err
		}
		if stray(now, to-at) {
			return ErrCorrupt
		}
		if d.plan.flip {
			invert(now, at, to)
		}
		t.words(now, at)
	}
	return r.end()
}

// stray reports whether words, of which span bits count, have a one after these.
func stray(words []uint64, span uint64) bool {
	return 64*uint64(len(words)) > span && words[len(words)-1]>>(span%64) != 0
}
