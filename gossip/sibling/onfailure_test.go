package sibling

import (
	"context"
	"errors"
	"slices"
	"testing"
)

// OnFailure is called for requests without an answer, and for no others.
func TestOnFailure(t *testing.T) {
	var got []string
	h := &Health{OnFailure: func(peer string) { got = append(got, peer) }}
	h.note("a", hit)
	h.note("b", failed)
	h.note("c", falseHit)
	h.note("d", timedOut)
	h.asked("e", 0, nil)
	h.asked("f", 0, context.DeadlineExceeded)
	h.asked("g", 0, errors.New("refused"))
	if want := []string{"b", "d", "f", "g"}; !slices.Equal(got, want) {
		t.Errorf("OnFailure was called for %v, want %v", got, want)
	}
}
