package arith

// decodeBlocks decodes a set into t or, if t is nil, into words: chunk after chunk. The number
// of chunks follows from m and x, which checkCounts has compared with the length of src.
func decodeBlocks(words []uint64, t *taker, src []byte, m, x uint64) error {
	p := planBlocks(m, x)
	var local [onStack]part
	parts := append(local[:0], make([]part, p.chunks)...)
	if err := directory(src, &p, parts); err != nil {
		return err
	}
	var d chunkDecoder
	d.init(&p)
	for i, c := range parts {
		from, to := p.chunk(i)
		code := src[c.at : c.at+c.length]
		var err error
		if t != nil {
			err = d.set(t, code, from, to, c.count)
		} else {
			err = d.bitmap(words[from/64:wordsFor(to)], code, from, to, c.count)
		}
		if err == ErrTruncated && i < len(parts)-1 {
			err = ErrCorrupt // the directory says how long this chunk is
		}
		if err != nil {
			return err
		}
	}
	return nil
}
