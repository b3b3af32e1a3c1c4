package sibling

import (
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
)

// A sibling that is asked although no digest names it, and does not have the object, is
// no false hit: nobody said that it has.
func TestOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		defer w.close()
		w.sibling(holds("it"))
		w.sibling(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGatewayTimeout) })
		u, err := url.Parse(originURL + "/a")
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []Stats{{Asked: 1, Hits: 1}, {Asked: 1, Hits: 1}} {
			in := w.client.Ask(Question{URL: u, Header: http.Header{"Cache-Control": {"only-if-cached"}}, Accept: func(*Answer) bool { return true }})
			in.Only(Peer{w.known[i].Peer, w.known[i].Service})
			a, err := in.Next(t.Context(), nil)
			if err != nil || (a == nil) != (i == 1) {
				t.Fatalf("Next = %v, %v", a, err)
			}
			if a != nil {
				a.Body.Close()
			}
			got := w.client.Stats()
			got.Bytes = 0
			if got != want {
				t.Errorf("after question %d: %+v, want %+v", i, got, want)
			}
		}
	})
}
