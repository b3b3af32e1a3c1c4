package diskstore

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// TestWindows: bodies of a length that borrows memory, received side by side, give every follower
// its own bytes, however it reads them and whenever it comes: the memory goes to the next body only
// when nobody can read the former.
func TestWindows(t *testing.T) {
	s := open(t, Options{})
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 30 {
				n := blockSize - i*(blockSize/40)
				want := body(uint64(100*g+i), n)
				w, err := s.Create(fmt.Sprint(g, " ", i), int64(n))
				if err != nil {
					t.Error(err)
					return
				}
				w.Hold()
				early, _ := w.Follow(t.Context())
				for rest := want; len(rest) > 0; {
					into := w.Free()
					if len(into) == 0 || i%3 == 0 {
						into = make([]byte, blockSize)
					}
					k := copy(into[:min(len(into), 7000)], rest)
					if err := w.Write(t.Context(), into[:k]); err != nil {
						t.Error(err)
						return
					}
					rest = rest[k:]
				}
				if b := early.Whole(); b != nil {
					t.Errorf("a body that has not ended is whole, with %d bytes", len(b))
				}
				if free := w.Free(); len(free) != 0 {
					t.Errorf("%d bytes are free behind the end", len(free))
				}
				if i%5 == 4 {
					w.Abort()
				} else if _, err := w.Commit(bodies.Meta{}); err != nil {
					t.Error(err)
				}
				late, ok := w.Follow(t.Context())
				w.Release()
				if !ok {
					t.Error("a body that is held can't be followed")
					return
				}
				early.Close()
				if b := late.Whole(); i%5 == 4 && b != nil || i%5 != 4 && !bytes.Equal(b, want) {
					t.Errorf("body %d: Whole() = %d other bytes", i, len(b))
				}
				if b, err := io.ReadAll(late); (err == nil) != (i%5 != 4) || !bytes.Equal(b, want) {
					t.Errorf("body %d: read %d other bytes, %v", i, len(b), err)
				}
				late.Close()
				if w.InMemory() != 0 {
					t.Errorf("body %d keeps its window", i)
				}
			}
		})
	}
	all.Wait()
}
