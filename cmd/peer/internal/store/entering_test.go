package store

import (
	"slices"
	"testing"
	"time"
)

// TestListedAfterHook: whoever begins to iterate when the hook was told of an object
// meets it, also if it is not in the index yet.
func TestListedAfterHook(t *testing.T) {
	var s *Store
	for _, update := range []bool{false, true} {
		var keys chan []string
		iterate := func(key string) {
			keys = make(chan []string, 1)
			done := make(chan struct{})
			go func() {
				defer close(done)
				var all []string
				for o := range s.Listed() {
					all = append(all, o.Key())
				}
				keys <- all
			}()
			for s.entering.TryRLock() { // until the iteration waits, or is over
				s.entering.RUnlock()
				select {
				case <-done:
					return
				default:
				}
			}
		}
		told := func(string) {}
		s = open(t, Options{Hooks: Hooks{Listed: func(key string) { told(key) }}})
		var o *Object
		if update { // it was not listed before
			o = put(t, s, "k", []byte("body"), Meta{})
		}
		told = iterate
		m := Meta{ListUntil: time.Now().Add(time.Hour)}
		if update {
			_, err := s.Update(o, m)
			check(t, err)
		} else {
			put(t, s, "k", []byte("body"), m)
		}
		if got := <-keys; !slices.Equal(got, []string{"k"}) {
			t.Errorf("update=%v: Listed() = %q, want k", update, got)
		}
	}
}
