package sibling

import (
	"slices"
	"testing"
)

// doubting is a Locator that is told of failures.
type doubting struct {
	Locator
	of []string
}

func (d *doubting) Doubt(peer string) { d.of = append(d.of, peer) }

// TestDoubt: the Locator is told of requests without an answer, and of no others.
func TestDoubt(t *testing.T) {
	l := new(doubting)
	c, err := New(Config{Name: "self", Locator: l})
	if err != nil {
		t.Fatal(err)
	}
	h := c.cfg.Health
	h.record(outcome{peer: "a", result: hit})
	h.record(outcome{peer: "b", result: failed})
	h.record(outcome{peer: "c", result: falseHit})
	h.record(outcome{peer: "d", result: timedOut})
	h.record(outcome{peer: "e", kind: question, result: answered})
	h.record(outcome{peer: "f", kind: question, result: silent})
	h.record(outcome{peer: "g", kind: question, result: failed})
	if want := []string{"b", "d", "f", "g"}; !slices.Equal(l.of, want) {
		t.Errorf("the Locator doubts %v, want %v", l.of, want)
	}
}
