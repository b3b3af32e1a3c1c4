package sibling

import (
	"context"
	"testing"
	"testing/synctest"
)

// asks is a world whose Locator has to ask for the candidates.
type asks struct {
	*world
	asked  [][]string
	judged map[string]bool
}

func (a *asks) Candidates([]Candidate, string) []Candidate { panic("it has to be asked") }

func (a *asks) Ask(_ context.Context, identities []string) [][]Candidate {
	a.asked = append(a.asked, identities)
	found := make([][]Candidate, len(identities))
	for _, c := range a.known {
		c.Via = "full"
		found[0] = append(found[0], c)
	}
	return found
}

func (a *asks) Judge(c Candidate, has bool) { a.judged[c.Via+"/"+c.Peer] = has }

// TestAskingLocator checks that a Client asks for the candidates once for each lookup, sends them requests, and says which
// had the object.
func TestAskingLocator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asks{world: newWorld(t, Config{}), judged: make(map[string]bool)}
		defer a.close()
		var err error
		if a.client, err = New(Config{Name: "me", Locator: a, HTTP: a.questions}); err != nil {
			t.Fatal(err)
		}
		a.sibling(lacks)
		a.sibling(holds("an object"))
		_, body, err := a.get(t.Context(), "/x")
		if err != nil || body != "an object" || len(a.asked) != 1 || len(a.asked[0]) != 1 {
			t.Errorf("body %q, %v after the questions %q, want one", body, err, a.asked)
		}
		if has, known := a.judged["full/p1"]; !known || has || !a.judged["full/p2"] {
			t.Errorf("judged: %v, want that p1 had nothing and p2 the object", a.judged)
		}
	})
}
