package node

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
)

// A versions is an origin whose answers have a version, which a POST increases.
type versions struct{ now atomic.Int64 }

func (o *versions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		o.now.Add(1)
		return
	}
	w.Header().Set("Cache-Control", "max-age=3600")
	fmt.Fprint(w, o.now.Load())
}

// send sends a request to a peer, and returns the body and Cache-Status of the answer.
func (v *virtual) send(method string, i int, target string) (body, status string) {
	v.t.Helper()
	r, _ := http.NewRequest(method, fmt.Sprintf("http://10.0.0.%d:80%s", i+1, target), nil)
	answer, err := v.client.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return string(b), strings.Join(answer.Header["Cache-Status"], ", ")
}

// TestWriteReachesAll: after a write at one peer, a client that is sent from peer to peer
// never gets the earlier version, not even at a peer that was away and is back with its store.
func TestWriteReachesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVirtual(t, 0, nil)
		defer v.stop()
		v.server.Handler = new(versions)
		dir := t.TempDir()
		at := func(i int) string { return filepath.Join(dir, fmt.Sprint(i)) }
		for i := range 3 {
			v.start(i, at(i))
		}
		pause(3 * time.Second)
		all := func(want string) {
			t.Helper()
			for i := range v.nodes {
				if got, status := v.send("GET", i, "/x"); got != want {
					t.Errorf("p%d has version %s (%s), want %s", i, got, status, want)
				}
			}
		}
		all("0")
		v.send("GET", 2, "/y")
		pause(3 * time.Second)
		for round := range 9 {
			v.send("POST", round%3, "/x")
			all(fmt.Sprint(round + 1))
			all(fmt.Sprint(round + 1))
			pause(time.Duration(round) * time.Second / 2)
		}
		if _, status := v.send("GET", 2, "/x"); !strings.Contains(status, "p2; hit") {
			t.Errorf("in the end p2 has %s", status)
		}
		if err := v.nodes[2].Close(); err != nil {
			t.Fatal(err)
		}
		v.nodes = v.nodes[:2]
		pause(30 * time.Second)
		v.send("POST", 0, "/x")
		all("10")
		v.start(2, at(2))
		all("10")
		if _, status := v.send("GET", 2, "/y"); !strings.Contains(status, "p2; hit") {
			t.Errorf("what was not invalidated p2 has %s", status)
		}
		pause(time.Second) // until p1, too, knows that p2 is back
		// An operator's purge goes the same way.
		if r, err := v.nodes[1].Purge(t.Context(), admin.PurgeRequest{URL: "/x", Everywhere: true}); err != nil || r.Failed() != 0 || len(r.Peers) != 3 || r.Peers[0].Removed != 1 {
			t.Errorf("Purge = %+v, %v", r, err)
		}
		if _, status := v.send("GET", 0, "/x"); strings.Contains(status, "hit") {
			t.Errorf("after a purge p0 has %s", status)
		}
	})
}
