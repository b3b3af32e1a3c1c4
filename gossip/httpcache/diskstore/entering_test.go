package diskstore

import (
	"io"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// TestListedAfterHook: an iteration that begins after the hook was called for an object
// yields it, even if it was not in the index yet.
func TestListedAfterHook(t *testing.T) {
	var s *store
	for _, update := range []bool{false, true} {
		var keys chan []string
		iterate := func(key string) {
			keys = make(chan []string, 1)
			begun := make(chan struct{})
			go func() {
				close(begun)
				var all []string
				for o := range s.Listed() {
					all = append(all, o.Key())
				}
				keys <- all
			}()
			<-begun
			for range 1000 { // until the iteration waits, or is over
				runtime.Gosched()
			}
		}
		told := func(string) {}
		s = open(t, Options{Hooks: bodies.Hooks{Listed: func(key string) { told(key) }}})
		var o *object
		if update { // it was not listed before
			o = put(t, s, "k", []byte("body"), bodies.Meta{})
		}
		told = iterate
		m := bodies.Meta{ListUntil: time.Now().Add(time.Hour)}
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

// TestFollowUntilFound: a body that is being committed can be followed until its object can be
// found, so that a request always finds one of the two.
func TestFollowUntilFound(t *testing.T) {
	var w *writer
	followed := false
	s := open(t, Options{Hooks: bodies.Hooks{Stored: func(key string) {
		f, ok := w.Follow(t.Context())
		if !ok {
			t.Fatal("the object is not found yet, and its body cannot be followed any more")
		}
		defer f.Close()
		got, err := io.ReadAll(f)
		if followed = true; string(got) != "body" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}}})
	for _, size := range []int64{4, -1} {
		var err error
		if w, err = s.create("k", size); err != nil {
			t.Fatal(err)
		}
		if err := w.Write(t.Context(), []byte("body")); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Commit(bodies.Meta{}); err != nil || !followed {
			t.Fatal(err, followed)
		}
		followed = false
	}
}
