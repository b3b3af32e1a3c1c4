package index

// prefetch asks memory for what p points to, and does not wait. A mere load would:
// few instructions can be under way behind one that has not got its value.
//
//go:noescape
func prefetch(p *uint64)
