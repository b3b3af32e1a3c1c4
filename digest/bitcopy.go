package digest

// copyBits copies n bits of src, from bit s on, to dst, from bit d on. The bits of dst must be
// zero. It reads only words of src that have a bit to copy.
func copyBits(dst []uint64, d uint64, src []uint64, s, n uint64) {
	if n == 0 {
		return
	}
	if offset := d & 63; offset != 0 {
		take := min(64-offset, n)
		dst[d>>6] |= fewBits(src, s, take) << offset
		d, s, n = d+take, s+take, n-take
	}
	to := dst[d>>6:][:n>>6]
	if from, shift := src[s>>6:], s&63; len(to) == 0 {
	} else if shift == 0 {
		copy(to, from)
	} else {
		from = from[: len(to)+1 : len(to)+1]
		low := from[0]
		for i := range to {
			next := from[i+1]
			to[i] = low>>shift | next<<(64-shift)
			low = next
		}
	}
	if rest := n & 63; rest != 0 {
		done := n &^ 63
		dst[(d+done)>>6] = fewBits(src, s+done, rest)
	}
}

// fewBits returns n bits of src from bit s on, 1 to 64.
func fewBits(src []uint64, s, n uint64) uint64 {
	offset := s & 63
	bits := src[s>>6] >> offset
	if offset+n > 64 {
		bits |= src[s>>6+1] << (64 - offset)
	}
	return bits & (^uint64(0) >> (64 - n))
}

// bitsAt returns 64 bits of src, from bit s on. src must have a word after that of bit s.
func bitsAt(src []uint64, s uint64) uint64 {
	w, offset := s>>6, s&63
	pair := src[w : w+2 : w+2]
	return pair[0]>>offset | pair[1]<<1<<(63-offset)
}
