package arith

// blockDecoder decodes one set.
type blockDecoder struct {
	decodeTable
	plan blockPlan
	jump uint64           // gaps: positions that a jump skips
	kept [maxSymbols]bool // blocks: the groups that must not be escaped
}

func (d *blockDecoder) init(p *blockPlan) {
	d.plan = *p
	var mod model
	p.model(&mod, func(ordinal int, keep bool) { d.kept[ordinal] = keep })
	d.build(&mod)
	if p.gaps {
		d.buildGaps(&mod)
		d.jump = mod.symbols[mod.n-1].base
	}
}

// blockReader is a code being decoded.
type blockReader struct {
	bitReader
	count  uint64 // members still to come
	place  uint64 // gaps: where the next one begins
	values [batch]uint64
}

// open starts to decode a code of at least one member.
func (d *blockDecoder) open(r *blockReader, src []byte) error {
	r.count = d.plan.y
	if !r.reset(src, &d.decodeTable) {
		return ErrCorrupt
	}
	return nil
}

// end checks that the code ends here.
func (r *blockReader) end() error {
	if r.count != 0 || !r.done() {
		return ErrCorrupt
	}
	return nil
}

// members returns the next members, all below m. After jumps there may be none.
func (d *blockDecoder) members(r *blockReader) (found []uint64, err error) {
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
		if place > d.plan.m {
			return nil, ErrCorrupt
		}
	}
	if place > d.plan.m {
		return nil, ErrCorrupt
	}
	r.place = place
	r.count -= uint64(n)
	return out[:n], nil
}

func (d *blockDecoder) gapsToSet(t *taker, src []byte) error {
	var r blockReader
	if err := d.open(&r, src); err != nil {
		return err
	}
	for r.count > 0 {
		found, err := d.members(&r)
		if err != nil {
			return err
		}
		if !d.plan.flip {
			t.all(found)
			continue
		}
		for _, p := range found {
			t.skip(p)
		}
	}
	if d.plan.flip {
		t.run(d.plan.m)
	}
	return r.end()
}

// blocks decodes the next blocks into words, at most wordBatch of them.
func (d *blockDecoder) blocks(r *blockReader, words []uint64) error {
	r.bitReader.values(r.values[:4*len(words)], &d.decodeTable)
	ok := from16(words, r.values[:], &d.kept)
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

func (d *blockDecoder) blocksToWords(words []uint64, src []byte) error {
	fillTables()
	var r blockReader
	if err := d.open(&r, src); err != nil {
		return err
	}
	for i := 0; i < len(words); i += wordBatch {
		if err := d.blocks(&r, words[i:min(i+wordBatch, len(words))]); err != nil {
			return err
		}
	}
	if stray(words, d.plan.m) {
		return ErrCorrupt
	}
	return r.end()
}

func (d *blockDecoder) blocksToSet(t *taker, src []byte) error {
	fillTables()
	var r blockReader
	if err := d.open(&r, src); err != nil {
		return err
	}
	var words [wordBatch]uint64
	for at := uint64(0); at < d.plan.m; at += 64 * wordBatch {
		now := words[:min(wordBatch, wordsFor(d.plan.m-at))]
		if err := d.blocks(&r, now); err != nil {
			return err
		}
		if stray(now, d.plan.m-at) {
			return ErrCorrupt
		}
		if d.plan.flip {
			invert(now, at, d.plan.m)
		}
		t.words(now, at)
	}
	return r.end()
}

// stray reports whether words, of which span bits count, have a one after these.
func stray(words []uint64, span uint64) bool {
	return 64*uint64(len(words)) > span && words[len(words)-1]>>(span%64) != 0
}
