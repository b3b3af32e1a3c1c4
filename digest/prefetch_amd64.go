package digest

// prefetchAt starts to fetch so many bytes at an address into the processor's caches, and
// does not wait for them. The address need not be valid.
func prefetchAt(address, bytes uintptr)
