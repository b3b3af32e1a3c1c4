package store

import (
	"os"
	"sync"
	"time"
)

const (
	trustFor = time.Minute // how long a block that was checked is taken for right, if it stays in memory
	trustRun = 1 << 20     // bytes that the kernel is given to send at a time
)

// resident is a file of which it can be told what is in the system's memory, and
// which the kernel can send from there.
type resident interface {
	// Resident reports whether n bytes from off on are all in memory; false = no, or
	// not known.
	Resident(off, n int64) bool
	Descriptor() *os.File
}

// trust notes which blocks of an open file were checked a short while ago. What was
// is not read again by us, but sent by the kernel, if all of it is in the system's
// memory still: see the package's comment.
type trust struct {
	file resident // nil = nothing of the file is trusted
	body int64

	mu    sync.Mutex
	since time.Time // of the first check of those noted
	right []uint64  // a bit for each block; nil = none
}

// note says that block i was just read and found right. The last block is not
// noted: the page that it ends in also holds what follows the body, whose readers
// and writers bring it into memory.
func (t *trust) note(i int64) {
	if t.file == nil || (i+1)*blockSize >= t.body {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.right == nil {
		t.right, t.since = make([]uint64, (blockCount(t.body)+63)/64), time.Now()
	}
	t.right[i/64] |= 1 << (i % 64)
}

// run returns how many bytes from off on, before end, may be sent as they are.
func (t *trust) run(off, end int64) int64 {
	if t.file == nil {
		return 0
	}
	end = min(end, off+trustRun)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.right != nil && time.Since(t.since) > trustFor {
		t.right = nil
	}
	if t.right == nil {
		return 0
	}
	at := off
	for i := off / blockSize; at < end && t.right[i/64]&(1<<(i%64)) != 0; i++ {
		at = (i + 1) * blockSize
	}
	n := min(at, end) - off
	if n > 0 && !t.file.Resident(off, n) {
		t.right = nil // some left memory, and others may have come back
		return 0
	}
	return n
}

// forget ends the trust in all blocks.
func (t *trust) forget() {
	t.mu.Lock()
	t.right = nil
	t.mu.Unlock()
}
