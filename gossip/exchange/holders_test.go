package exchange

import (
	"slices"
	"testing"

	"github.com/summarycache/summarycache/digest"
)

// TestReplyNames: a reply names no more than fit, never the asker, those of its zone first, and to each asker others.
func TestReplyNames(t *testing.T) {
	q := Question{Number: 7, Keys: []digest.Key{1, 2}}
	named := func(dst []Named, k digest.Key) []Named {
		for i := range 100 {
			dst = append(dst, Named{Peer: ID(i), FalsePositives: 0.01, Far: i%10 != 0})
		}
		return dst
	}
	r := q.Reply(10, true, named)
	near := 0
	for _, h := range r.Holders {
		if h.Peer == 10 {
			t.Error("the asker is named")
		}
		if h.Peer%10 == 0 {
			near++
		}
	}
	if r.Number != 7 || r.NotYet || len(r.Holders) != MaxHolders || near != 2*9 {
		t.Errorf("%d holders, %d of the asker's zone, in %+v; want %d and 18", len(r.Holders), near, r, MaxHolders)
	}
	if slices.Equal(q.Reply(1000, true, named).Holders, q.Reply(1001, true, named).Holders) {
		t.Error("two askers are told the same holders")
	}
	if r := q.Reply(10, false, named); !r.NotYet || r.Holders != nil || r.Number != 7 {
		t.Errorf("one that lacks digests replies %+v", r)
	}
}
