package digest

// prefetchAt asks memory for so many bytes at an address, which need not be valid any
// more, and does not wait. A mere load would: few instructions can be under way behind
// one that has not got its value.
func prefetchAt(address, bytes uintptr)
