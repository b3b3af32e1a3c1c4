package diskstore

import (
	"os"
	"sync"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

const (
	trustFor = time.Minute // how long a checked block is trusted while it stays in memory
	trustRun = 1 << 20     // bytes that the kernel sends at a time
)

// resident is a file that the kernel can send from the page cache, and that reports which parts of it are there, and
// when it changed.
type resident interface {
	// Changed returns a time of the last change of the file, which differs after each later one; 0 = unknown, or
	// the file changed just now.
	Changed() int64
	// Resident reports whether n bytes from off on are all in memory; false = no, or unknown.
	Resident(off, n int64) bool
	Descriptor() *os.File
}

// trust notes which blocks of an open file were checked a short while ago. The kernel may send them while all of them
// are still in the page cache: see the package comment.
type trust struct {
	file resident // nil = no block is trusted
	body int64

	mu      sync.Mutex
	since   time.Time // when the first of the noted blocks was checked
	changed int64     // when the file had changed, before any of them was read
	right   []uint64  // a bit for each checked block; nil = none
}

// before returns what note needs to know about a block that is about to be read.
func (t *trust) before() (changed int64) {
	if t.file != nil {
		changed = t.file.Changed()
	}
	return changed
}

// note notes that block i was read after a call of before and is right.
func (t *trust) note(i, changed int64) {
	if t.file == nil || changed == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.right == nil || changed != t.changed {
		t.right, t.since, t.changed = make([]uint64, (bodies.BlockCount(t.body)+63)/64), time.Now(), changed
	}
	t.right[i/64] |= 1 << (i % 64)
}

// sendable returns how many bytes from off on, but not beyond end, the kernel may send.
func (t *trust) sendable(off, end int64) int64 {
	if t.file == nil {
		return 0
	}
	end = min(end, off+trustRun, t.body)
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
	n := max(min(at, end)-off, 0)
	if n > 0 && (!t.file.Resident(off, n) || t.file.Changed() != t.changed) {
		t.right = nil // some pages left memory, and others may have been read again; or somebody wrote
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
