package gossip

import (
	"fmt"
	"slices"
	"testing"

	"github.com/summarycache/summarycache/digest"
)

// TestHoldingsOfParts: repeated events change nothing, an object is held as long as a part holds it or a reference
// is left, a listing replaces what was there, and a new seed takes all parts and references along.
func TestHoldingsOfParts(t *testing.T) {
	h, err := PlanHoldings(1000, 0.001, digest.Opaque, testSecret)
	if err != nil {
		t.Fatal(err)
	}
	disk := h.Part()
	if !h.Add("a") || h.Add("a") || !disk.Add("a") || disk.Has("b") || !disk.Has("a") {
		t.Error("Add or Has is wrong")
	}
	h.Retain("copies")
	h.Retain("copies")
	if !h.Remove("a") || h.Remove("a") || h.Has("a") || !h.finds("a") {
		t.Error("an object that one part has left is not that of the other")
	}
	disk.Replace(slices.Values([]string{"b", "c", "b"}))
	if h.finds("a") || !h.finds("b") || h.Keys().Len() != 3 {
		t.Errorf("after a listing, %d objects are held", h.Keys().Len())
	}
	fresh := digest.SeedFrom([]byte("another secret of the cluster"))
	if err := h.Reseed(fresh, slices.Values([]string{"a", "b", "c", "copies", "b"})); err != nil {
		t.Fatal(err)
	}
	if h.Keys().Filter().Geometry().Seed != fresh || h.finds("a") || !h.finds("b") || !disk.Has("c") || h.Has("c") {
		t.Error("under the new seed other objects are held")
	}
	if !h.Release("copies") || !h.finds("copies") || !h.Release("copies") || h.finds("copies") || h.Release("copies") {
		t.Error("references are lost, or stay")
	}
	for i := range 5000 { // beyond the plan
		disk.Add(fmt.Sprint(i))
	}
	h.Keys().Inside().Settle()
	if h.Keys().Inside().Outgrown() || h.Keys().Len() != 5002 || h.Keys().Filter().Geometry().Seed != fresh || !h.finds("4999") {
		t.Errorf("%d objects are held, planned are %d", h.Keys().Len(), h.Keys().Inside().Planned())
	}
}

// finds reports whether a peer that has the digest finds an object here.
func (h *Holdings) finds(identity string) bool {
	f := h.Keys().Filter().Advance()
	return f.MayContain(digest.KeyOfString(f.Geometry().Seed, identity))
}
