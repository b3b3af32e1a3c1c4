package sibling

import (
	"slices"
	"testing"
)

// OnFailure is called for requests without an answer, and for no others.
func TestOnFailure(t *testing.T) {
	var got []string
	h := &Health{OnFailure: func(peer string) { got = append(got, peer) }}
	h.record(outcome{peer: "a", result: hit})
	h.record(outcome{peer: "b", result: failed})
	h.record(outcome{peer: "c", result: falseHit})
	h.record(outcome{peer: "d", result: timedOut})
	h.record(outcome{peer: "e", kind: question, result: answered})
	h.record(outcome{peer: "f", kind: question, result: silent})
	h.record(outcome{peer: "g", kind: question, result: failed})
	if want := []string{"b", "d", "f", "g"}; !slices.Equal(got, want) {
		t.Errorf("OnFailure was called for %v, want %v", got, want)
	}
}
