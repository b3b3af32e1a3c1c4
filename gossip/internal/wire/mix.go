package wire

// Mix is the mix of PROTOCOL.md, section 14: a bijection in which each input bit affects each output bit.
func Mix(x uint64) uint64 {
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	return x ^ x>>32
}
