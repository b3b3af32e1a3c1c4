package digest

// copyBits copies n bits of src from bit s on to dst from bit d on, where dst must
// be zero. src must have a word to spare behind the last bit.
func copyBits(dst []uint64, d uint64, src []uint64, s, n uint64) {
	for n > 0 {
		offset := d & 63
		take := min(64-offset, n)
		dst[d>>6] |= bitsAt(src, s) & (^uint64(0) >> (64 - take)) << offset
		d, s, n = d+take, s+take, n-take
	}
}

// bitsAt returns the 64 bits of src from bit s on.
func bitsAt(src []uint64, s uint64) uint64 {
	w, offset := s>>6, s&63
	pair := src[w : w+2 : w+2]
	return pair[0]>>offset | pair[1]<<1<<(63-offset)
}
