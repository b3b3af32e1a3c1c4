package memstore

import (
	"slices"
	"strings"
	"testing"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// put stores an object of 8 KiB, about.
func put(t *testing.T, s *store, key string, copied bool) {
	t.Helper()
	w, err := s.Create(key, 7<<10)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(t.Context(), make([]byte, 7<<10)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(bodies.Meta{Copied: copied}); err != nil {
		t.Fatal(err)
	}
}

// Copies are evicted before other objects, until they are requested again. The bound in bytes is never exceeded.
func TestCopiesGoFirst(t *testing.T) {
	const room = 36 << 10 // for four
	var stored, evicted int
	s := open(room, bodies.Hooks{Stored: func(string) { stored++ }, Evicted: func(string) { evicted++ }})
	has := func(want string) {
		t.Helper()
		got := strings.Join(slices.Sorted(s.Keys()), " ")
		if got != want || s.bytesLocked() > room || stored-evicted != strings.Count(want, " ")+1 {
			t.Errorf("the store has %q, want %q; %d bytes, %d stored, %d evicted", got, want, s.bytesLocked(), stored, evicted)
		}
	}
	for _, key := range []string{"copy1", "own1", "copy2", "own2"} {
		put(t, s, key, strings.HasPrefix(key, "copy"))
	}
	has("copy1 copy2 own1 own2")
	put(t, s, "own3", false)
	has("copy2 own1 own2 own3") // the older copy has gone
	if _, ok := s.Get("copy2"); !ok {
		t.Fatal("copy2 is gone")
	}
	put(t, s, "copy3", true)
	has("copy2 copy3 own2 own3") // copy2 was requested again: own1 was the oldest
	put(t, s, "copy4", true)
	has("copy2 copy4 own2 own3")
	if _, ok := s.Peek("own2"); !ok {
		t.Fatal("own2 is gone")
	}
	put(t, s, "own4", false)
	put(t, s, "own5", false)
	has("copy2 copy4 own4 own5") // looking at own2 is no use, and the last copy stays
}
