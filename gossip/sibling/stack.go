package sibling

// growStack grows the stack of a goroutine that is to run a question to 8 KiB, which that takes.
// At its beginning there is nothing to copy, which growing in steps has to do each time.
//
//go:noinline
func growStack(i int) byte {
	var room [6 << 10]byte
	return room[i%len(room)]
}
