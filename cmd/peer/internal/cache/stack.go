package cache

// growStack grows the stack of a goroutine that is to run a fetch to 16 KiB, which that takes.
// At its beginning there is nothing to copy: growing in steps, each of which finds the pointers in
// all that was called so far, took nearly a tenth of the processor's time of a miss (BENCHMARKS.md).
//
//go:noinline
func growStack(i int) byte {
	var room [10 << 10]byte
	return room[i%len(room)]
}
