package store

import (
	"os"
	"slices"
	"sync"
	"time"
)

const (
	trustFor = time.Minute // how long a block that was checked is taken for right, if it stays in memory
	trustRun = 1 << 20     // bytes that the kernel is given to send at a time
)

// resident is a file that the kernel can send from the system's memory, and that tells what
// of it is there.
type resident interface {
	// Resident reports whether n bytes from off on are all in memory; false = no, or
	// not known.
	Resident(off, n int64) bool
	Descriptor() *os.File
}

// trust notes which blocks of an open file were checked a short while ago. The kernel sends
// them if all of them are still in the system's memory: see the package's comment.
type trust struct {
	file resident // nil = nothing of the file is trusted
	body int64

	mu    sync.Mutex
	since time.Time // of the first check of those noted
	right []uint64  // a bit for each block; nil = none
	rest  []byte    // what the body has on its last page, as it was checked
}

// pageSize is the unit in which the system keeps files in memory.
var pageSize = int64(os.Getpagesize())

// paged is where the body's last page begins, if it also holds what follows the
// body; else the body's length.
func (t *trust) paged() int64 { return t.body / pageSize * pageSize }

// note notes that block i, whose bytes are b, was just read and found right. It keeps what the
// body has on its last page: that page also holds what follows the body, and readers and
// writers of that bring it into memory.
func (t *trust) note(i int64, b []byte) {
	if t.file == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.right == nil {
		t.right, t.since = make([]uint64, (blockCount(t.body)+63)/64), time.Now()
	}
	t.right[i/64] |= 1 << (i % 64)
	if (i+1)*blockSize >= t.body {
		t.rest = slices.Clone(b[max(t.paged()-i*blockSize, 0):])
	}
}

// held returns the body from off on, if that is on its last page and was kept. It must not be
// changed.
func (t *trust) held(off int64) []byte {
	if t.file == nil || off < t.paged() {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.right == nil || len(t.rest) == 0 || time.Since(t.since) > trustFor {
		return nil
	}
	return t.rest[off-(t.body-int64(len(t.rest))):]
}

// run returns how many bytes from off on, but not beyond end, may be sent unread.
func (t *trust) run(off, end int64) int64 {
	if t.file == nil {
		return 0
	}
	end = min(end, off+trustRun, t.paged())
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.right != nil && time.Since(t.since) > trustFor {
		t.right, t.rest = nil, nil
	}
	if t.right == nil {
		return 0
	}
	at := off
	for i := off / blockSize; at < end && t.right[i/64]&(1<<(i%64)) != 0; i++ {
		at = (i + 1) * blockSize
	}
	n := max(min(at, end)-off, 0)
	if n > 0 && !t.file.Resident(off, n) {
		t.right, t.rest = nil, nil // some left memory, and others may have come back
		return 0
	}
	return n
}

// forget ends the trust in all blocks.
func (t *trust) forget() {
	t.mu.Lock()
	t.right, t.rest = nil, nil
	t.mu.Unlock()
}
