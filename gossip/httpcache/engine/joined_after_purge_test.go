package engine

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/invalidation"
)

// What was invalidated while it was fetched is for the requests that came before: those that come then join neither its
// fetch nor its body, here or at a sibling, and find nothing of it in the store.
func TestJoinedAfterPurge(t *testing.T) {
	for name, target := range map[string]invalidation.Target{
		"by URL":     TargetOf("http://" + originHost + "/x"),
		"by tag":     {Kind: invalidation.Tag, Name: "t"},
		"by prefix":  below("http://" + originHost + "/"),
		"by pattern": {Kind: invalidation.Pattern, Name: TargetOf("http://" + originHost + "/*").Name},
		"of another": TargetOf("http://" + originHost + "/y"),
	} {
		for _, begun := range []bool{false, true} { // the answer has, when it is invalidated
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newCluster(t, func(rw http.ResponseWriter, r *http.Request, n int) {
						version := []byte("new")
						if n == 0 {
							version = []byte("old")
						}
						if !begun {
							time.Sleep(time.Second)
						}
						rw.Header().Set("Cache-Control", "max-age=600")
						rw.Header().Set("Surrogate-Key", "s, t")
						rw.Write(version)
						http.NewResponseController(rw).Flush()
						time.Sleep(900 * time.Millisecond)
						rw.Write(version)
					}, "a", "b")
					defer w.close()
					var all sync.WaitGroup
					get := func(peer, want string) {
						all.Go(func() {
							if got := w.get(peer, "/x"); got.err != nil || got.body != want+want {
								t.Errorf("begun %v: %q, %v, want %s twice", begun, got.body, got.err, want)
							}
						})
					}
					get("a", "old")
					time.Sleep(500 * time.Millisecond)
					for _, p := range w.peers {
						p.Invalidated(target)
					}
					then := "new"
					if name == "of another" {
						then = "old"
					}
					get("a", then)
					if begun || then == "new" { // nobody tells b of a fetch without an answer
						get("b", then)
					}
					all.Wait()
					synctest.Wait()
					get("a", then)
					all.Wait()
				})
			})
		}
	}
}

// A fetch and an invalidation of the same moment have an order: what was fetched before is not found afterwards, and
// what is fetched then is stored.
func TestPurgeAtTheSameMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		version, fetches := 0, 0
		w := newCluster(t, func(rw http.ResponseWriter, r *http.Request, n int) {
			fetches++
			rw.Header().Set("Cache-Control", "max-age=600")
			fmt.Fprint(rw, version)
		}, "a")
		defer w.close()
		for range 50 {
			for range 2 {
				if got := w.get("a", "/x"); got.body != fmt.Sprint(version) {
					t.Errorf("%s of version %d", got.body, version)
				}
				if version%2 == 0 {
					synctest.Wait() // otherwise the response may not be in the store yet
				}
			}
			version++
			w.peers["a"].Invalidated(TargetOf("http://" + originHost + "/x"))
		}
		if fetches != 50 {
			t.Errorf("%d fetches of 50 versions", fetches)
		}
	})
}
