package digest

// Limits bounds what a decoder accepts, before it allocates. The zero Limits are
// the defaults.
type Limits struct {
	// Bytes is the longest message: 64 MiB if zero.
	Bytes int
	// Bits is the largest m: 2^44 if zero. The memory of a sparse filter does
	// not depend on m.
	Bits uint64
	// Memory is how many bytes decoding one message may take: 256 MiB if zero.
	Memory int
	// Seed is the cluster's. Messages of another seed are refused with ErrSeed.
	// Zero accepts any seed, and leaves Geometry().Seed at zero.
	Seed uint64
	// Profile is what the caller's identities are. Messages of another profile are refused with
	// ErrSeed, so that two uses of one secret do not believe each other. [AnyProfile] accepts all.
	Profile Profile
}

func (l Limits) withDefaults() Limits {
	if l.Bytes <= 0 {
		l.Bytes = 64 << 20
	}
	if l.Bits == 0 {
		l.Bits = maxBits
	}
	if l.Memory <= 0 {
		l.Memory = 256 << 20
	}
	return l
}
