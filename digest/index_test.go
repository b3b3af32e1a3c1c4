package digest

import (
	"slices"
	"sync"
	"testing"
)

func TestIndex(t *testing.T) {
	x := NewIndex()
	shared := randomKeys(random(0), 100)
	own := map[string][]Key{}
	for i, peer := range []string{"c", "a", "b"} {
		own[peer] = randomKeys(random(uint64(i+1)), 50)
		g := Geometry{Bits: 1 << (40 - i), Hashes: 1}
		x.Set(peer, counting(t, g, append(own[peer], shared...)...).Advance())
	}
	names := func(k Key) (names []string) {
		for _, m := range x.Lookup(nil, k) {
			names = append(names, m.Peer)
		}
		return names
	}
	for _, k := range shared {
		if got := names(k); !slices.Equal(got, []string{"c", "a", "b"}) {
			t.Fatalf("Lookup = %v, want the surest first", got)
		}
	}
	for peer, keys := range own {
		for _, k := range keys {
			if got := names(k); !slices.Equal(got, []string{peer}) {
				t.Fatalf("Lookup = %v, want %s", got, peer)
			}
		}
	}
	dst := make([]Match, 0, 3)
	if got := testing.AllocsPerRun(100, func() { x.Lookup(dst, shared[0]) }); got != 0 {
		t.Errorf("Lookup allocates %v times", got)
	}
	x.Clear("a")
	x.Clear("a")
	if got := names(shared[0]); !slices.Equal(got, []string{"c", "b"}) || x.Len() != 2 {
		t.Errorf("after Clear, Lookup = %v, Len = %d", got, x.Len())
	}
}

// TestIndexUnderUpdates: a key in a peer's filter before and after an update is
// found during it.
func TestIndexUnderUpdates(t *testing.T) {
	v := versions(t, Geometry{Bits: 1 << 20, Hashes: 1}, 100, 0, 1)
	kept := Key(12345)
	c := counting(t, v[0].Geometry(), kept)
	x := NewIndex()
	x.Set("peer", c.Advance())
	var wg sync.WaitGroup
	done := make(chan struct{})
	wg.Go(func() {
		for _, k := range randomKeys(random(8), 500) {
			c.Add(k)
			x.Set("peer", c.Advance())
			x.Set("other", v[0])
			x.Clear("other")
		}
		close(done)
	})
	var dst []Match
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		if dst = x.Lookup(dst[:0], kept); len(dst) == 0 || dst[0].Peer != "peer" && len(dst) < 2 {
			t.Fatal("a key was missed during an update")
		}
	}
	wg.Wait()
}
