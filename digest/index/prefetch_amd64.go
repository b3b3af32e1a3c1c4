package index

// prefetch begins to load the cache line of p, and does not wait. An ordinary load would: few further
// instructions can execute while its value is missing.
//
//go:noescape
func prefetch(p *uint64)
