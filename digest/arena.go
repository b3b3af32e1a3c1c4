package digest

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"
)

// An arena hands out zeroed memory that lies in a mapped file. A nil arena hands
// out ordinary memory, and so does one whose file cannot grow: the counters then
// cost resident memory, and nothing else is lost. What is handed out is not taken
// back before the arena is closed.
type arena struct {
	mu       sync.Mutex
	file     *os.File
	size     int64
	mapped   [][]byte
	rest     []byte // of the last mapping, not yet handed out
	overflow error  // the first failure to grow
}

const arenaStep = 1 << 20 // bytes by which a file grows, at least

func newArena(path string) (*arena, error) {
	if !canMap {
		return nil, fmt.Errorf("digest: map counters: %w", errors.ErrUnsupported)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("digest: map counters: %w", err)
	}
	return &arena{file: file}, nil
}

// words returns n zeroed words.
func (a *arena) words(n int) []uint32 {
	if a == nil {
		return make([]uint32, n)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	need := (4*n + 63) &^ 63 // whole cache lines
	if a.overflow == nil && len(a.rest) < need {
		a.overflow = a.grow(max(need, arenaStep))
	}
	if a.overflow != nil {
		return make([]uint32, n)
	}
	b := a.rest[:need]
	a.rest = a.rest[need:]
	return unsafe.Slice((*uint32)(unsafe.Pointer(&b[0])), n)
}

// grow adds at least n bytes to the file and maps them. It writes them first, so
// that a full disk is an error here and not a fault when they are used.
func (a *arena) grow(n int) error {
	n = (n + arenaStep - 1) / arenaStep * arenaStep
	zeros := make([]byte, arenaStep)
	for at := 0; at < n; at += arenaStep {
		if _, err := a.file.WriteAt(zeros, a.size+int64(at)); err != nil {
			return err
		}
	}
	b, err := mapFile(a.file, a.size, n)
	if err != nil {
		return err
	}
	a.size += int64(n)
	a.mapped = append(a.mapped, b)
	a.rest = b
	return nil
}

func (a *arena) bytes() int {
	if a == nil {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return int(a.size)
}

// close removes the file. Nothing that was handed out may be used any more.
func (a *arena) close() error {
	if a == nil {
		return nil
	}
	errs := []error{a.overflow}
	for _, b := range a.mapped {
		errs = append(errs, unmapFile(b))
	}
	return errors.Join(append(errs, a.file.Close(), os.Remove(a.file.Name()))...)
}
