package exchange

import (
	"math"
	"testing"
	"time"

	"github.com/summarycache/summarycache/digest"
)

// TestDemand: ten of a hundred new objects are looked up, five of them twice, and the lookups of
// old and of absent objects do not count.
func TestDemand(t *testing.T) {
	held, err := digest.NewCountingFilter(digest.Geometry{Bits: 1 << 30, Hashes: 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	key := func(i int) digest.Key { return digest.Key(uint64(i+1) * 0x9e3779b97f4a7c15) }
	for i := range 50 {
		held.Add(key(i))
	}
	current := held.Advance()
	watch := func() func() *digest.Filter { return func() *digest.Filter { return current } }
	var d Demand
	now := time.Unix(1000, 0)
	if rate, news := d.Look(now, watch); news || rate != priorAsks {
		t.Errorf("before any watch: %v, %v; want %v", rate, news, priorAsks)
	}
	for i := range 60 { // 50 old objects, 10 that are not advertised yet
		d.Note(key(i))
	}
	for i := range 100 {
		held.Add(key(50 + i))
	}
	current = held.Advance()
	for i := range 5 {
		d.Note(key(50 + i))
		d.Note(key(1000 + i))
	}
	if _, news := d.Look(now.Add(20*time.Second), watch); news {
		t.Error("70 lookups in 20 s end the watch")
	}
	rate, news := d.Look(now.Add(30*time.Second), watch)
	if want := (15 + priorAsks*demandPrior) / (100*30 + demandPrior); !news || math.Abs(rate-want) > 1e-12 {
		t.Errorf("after a watch: %v, %v; want %v", rate, news, want)
	}
	for range demandEnough {
		d.Note(key(1))
	}
	if _, news := d.Look(now.Add(32*time.Second), func() func() *digest.Filter { return nil }); news {
		t.Error("a digest that did not change is news")
	}
	if rate2, news := d.Look(now.Add(33*time.Second), watch); news || rate2 != rate {
		t.Errorf("without a sibling: %v, %v; want %v", rate2, news, rate)
	}
}
