package mutation

import (
	"bytes"
	"testing"
)

// A mutation follows from its seed and number, and each kind comes up.
func TestNew(t *testing.T) {
	places := []*Place{{Name: "a.test", Bases: []string{"/page", "/account"}, Share: 2}, {Name: "b.test", Under: "/b", Bases: []string{"/b/ranged/404"}, Share: 1}}
	kinds := map[string]bool{}
	for n := range 2000 {
		a, b := New(1, n, places), New(1, n, places)
		first, second := a.Request("n=1z").Bytes(), b.Request("n=1z").Bytes()
		if !bytes.Equal(first, second) || !bytes.Equal(first, a.Request("n=1z").Bytes()) {
			t.Fatalf("mutation %d: %q, then %q", n, first, second)
		}
		if a.Victims[0] != (Victim{a.Base, "n=1z"}) {
			t.Fatalf("mutation %d: the first victim asks for %v, want %s", n, a.Victims[0], a.Base)
		}
		for _, p := range a.Parts {
			kinds[p.Kind] = true
		}
	}
	for _, k := range partKinds {
		if !kinds[k.name] {
			t.Errorf("no mutation of kind %s", k.name)
		}
	}
}
