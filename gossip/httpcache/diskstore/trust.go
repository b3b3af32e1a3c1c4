package diskstore

import (
	"os"
	"slices"
	"sync"
	"time"
)

const (
	trustFor = time.Minute // how long a checked block is trusted while it stays in memory
	trustRun = 1 << 20     // bytes that the kernel sends at a time
)

// resident is a file that the kernel can send from the page cache, and that reports which parts
// of it are there, and when it changed.
type resident interface {
	// Changed returns a time of the last change of the file, which differs after each later one; 0 =
	// unknown, or the file changed just now.
	Changed() int64
	// Resident reports whether n bytes from off on are all in memory; false = no, or unknown.
	Resident(off, n int64) bool
	Descriptor() *os.File
}

// trust notes which blocks of an open file were checked a short while ago. The kernel may send
// them while all of them are still in the page cache: see the package comment.
type trust struct {
	file resident // nil = no block is trusted
	body int64

	mu      sync.Mutex
	since   time.Time // when the first of the noted blocks was checked
	changed int64     // when the file had changed, before any of them was read
	right   []uint64  // a bit for each checked block; nil = none
	rest    []byte    // the checked bytes of the body on its last page
}

// pageSize is the unit in which the system keeps files in memory.
var pageSize = int64(os.Getpagesize())

// paged returns the offset of the body's last page if the page also holds bytes behind the
// body, otherwise the body's length.
func (t *trust) paged() int64 { return t.body / pageSize * pageSize }

// before returns what note needs to know about a block that is about to be read.
func (t *trust) before() (changed int64) {
	if t.file != nil {
		changed = t.file.Changed()
	}
	return changed
}

// note notes that block i, whose bytes are b, was read after a call of before and is right. It keeps the
// body's bytes on its last page, because that page also holds the description, and readers and
// writers of the description load the page into memory unchecked.
func (t *trust) note(i int64, b []byte, changed int64) {
	if t.file == nil || changed == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.right == nil || changed != t.changed {
		t.right, t.rest = make([]uint64, (blockCount(t.body)+63)/64), nil
		t.since, t.changed = time.Now(), changed
	}
	t.right[i/64] |= 1 << (i % 64)
	if (i+1)*blockSize >= t.body {
		t.rest = slices.Clone(b[max(t.paged()-i*blockSize, 0):])
	}
}

// held returns the body from off on, if off is on its last page and note has kept those bytes.
// The result must not be changed.
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

// run returns how many bytes from off on, but not beyond end, the kernel may send.
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
	if n > 0 && (!t.file.Resident(off, n) || t.file.Changed() != t.changed) {
		t.right, t.rest = nil, nil // some pages left memory, and others may have been read again; or somebody wrote
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
