package engine

import "testing"

func TestRecent(t *testing.T) {
	r := recent[int]{limit: 100}
	for i := range 1000 {
		r.set(string(rune('a'+i)), i)
		if n := len(r.cur) + len(r.old); n > 200 {
			t.Fatalf("%d values are kept", n)
		}
	}
	for i := 900; i < 1000; i++ {
		if v, ok := r.get(string(rune('a' + i))); !ok || v != i {
			t.Errorf("get(%d) = %d, %v", i, v, ok)
		}
	}
}
