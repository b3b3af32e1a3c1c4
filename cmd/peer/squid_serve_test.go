//go:build unix

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	format "github.com/summarycache/summarycache/digest/squid"

	"github.com/summarycache/summarycache/cmd/peer/internal/squid"
)

// A Squid as packaged by Debian gets the objects that a peer holds from the peer, in whatever
// pieces the digest arrives.
func TestPeerToSquid(t *testing.T) {
	t.Parallel()
	sizes := []int{500}
	if *long {
		sizes = append(sizes, 5000, 50_000)
	}
	const strangers = 2000
	most := sizes[len(sizes)-1]
	s := newSite(t, most+strangers, 200)
	dir, held := t.TempDir(), 0
	for _, objects := range sizes {
		// The Squid named here never comes: this peer's digest does not depend on it.
		p := besidesAt(t, dir, "127.0.0.1:0", squid.Config{}, freeAddr(t))
		s.hold(t, p, targets(held, objects))
		held = objects
		for _, pieces := range []int{0, 1024} {
			t.Run(fmt.Sprintf("objects=%d/pieces=%d", objects, pieces), func(t *testing.T) {
				s.siblingHits(t, p, objects, pieces, targets(most, most+strangers))
			})
		}
		p.Close() // the next one makes its digest anew
	}
}

// siblingHits requests objects that the peer holds, and others, from a new Squid.
func (s *site) siblingHits(t *testing.T, p *neighbour, objects, pieces int, absent []string) {
	line := siblingLine(p.Addresses().Listen)
	if pieces > 0 {
		line = siblingLine(p.Addresses().Listen, "digest-url="+dribble(t, "http://"+p.Addresses().Listen+format.Path, pieces))
	}
	q := startSquid(t, squidSetup{lines: []string{line}})
	s.learn(t, q)

	before := p.Status().Traffic
	s.fetchAll(t, q.client, targets(0, objects))
	s.fetchAll(t, q.client, absent)
	after := p.Status().Traffic
	from := make(map[string]string)
	for _, l := range q.log() {
		from[strings.TrimPrefix(l.url, s.url)] = l.from
	}
	hits := 0
	for _, target := range targets(0, objects) {
		if from[target] == "CD_SIBLING_HIT" {
			hits++
		}
	}
	reached := after.NotServedToSiblings - before.NotServedToSiblings
	t.Logf("%d of %d advertised URLs are CD_SIBLING_HIT; %d of %d others reached the peer", hits, objects, reached, len(absent))
	if hits*100 < objects*99 {
		t.Errorf("%d of %d advertised URLs are CD_SIBLING_HIT, want 99 %%", hits, objects)
	}
	if int(reached)*50 > len(absent) {
		t.Errorf("%d of %d URLs that are not advertised reached the peer, want at most 2 %%", reached, len(absent))
	}
}

// probes are objects for the peer that are requested from a Squid, one after another, until it uses
// the peer's digest.
const probes = 100

func probe(i int) string { return fmt.Sprintf("/probe/%d", i) }

// hold makes a peer hold objects, and the probes.
func (s *site) hold(t *testing.T, p *neighbour, held []string) {
	t.Helper()
	all := held
	for i := range probes {
		s.Sizes[probe(i)] = 100
		all = append(all, probe(i))
	}
	s.fetchAll(t, p.client, all)
	eventually(t, time.Minute, "the peer holds what it fetched", func() bool { return p.Status().Store.Listed >= len(all) })
}

// learn waits until a Squid uses the peer's digest, which it fetches when it first could have used
// it. Most of the probes are spread over the time that is given: on a busy machine the digest may
// come later than the answers to a hundred requests.
func (s *site) learn(t *testing.T, q *squidProcess) {
	t.Helper()
	const limit, atOnce = time.Minute, probes / 5
	began, asked := time.Now(), 0
	defer func() { t.Logf("%d probes in %v until the Squid went by the digest", asked, time.Since(began)) }()
	eventually(t, limit, "the Squid goes by the peer's digest", func() bool {
		for _, l := range q.log() {
			if strings.HasPrefix(l.url, s.url+"/probe/") && l.from == "CD_SIBLING_HIT" {
				return true
			}
		}
		due := atOnce + int((probes-atOnce)*time.Since(began)/limit)
		if asked < min(due, probes) && asked <= len(q.log()) {
			if _, err := s.fetch(q.client, probe(asked)); err != nil {
				t.Fatal(err)
			}
			asked++
		}
		return false
	})
}

// dribble serves another URL's body in pieces, with pauses that make them separate packets.
func dribble(t *testing.T, from string, pieces int) string {
	relay := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := http.Get(from)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer answer.Body.Close()
		w.Header().Set("Content-Length", answer.Header.Get("Content-Length"))
		w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
		pause := time.NewTicker(time.Millisecond)
		defer pause.Stop()
		for {
			if _, err := io.CopyN(w, answer.Body, int64(pieces)); err != nil {
				return
			}
			http.NewResponseController(w).Flush()
			<-pause.C
		}
	}))
	t.Cleanup(relay.Close)
	return relay.URL + "/digest"
}
