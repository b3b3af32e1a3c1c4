//go:build unix

package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	format "github.com/summarycache/summarycache/digest/squid"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/cmd/peer/internal/proxy"
)

// periods are the periods of SQUID.md, shortened.
var periods = []string{"digest_rebuild_period 1 seconds", "digest_rewrite_period 1 seconds"}

// A peer gets the objects in a Squid's digest from the Squid.
func TestSquidToPeer(t *testing.T) {
	t.Parallel()
	const objects = 1000
	s := newSite(t, objects+200, 300)
	addr := freeAddr(t)
	p := besides(t, addr)
	q := startSquid(t, squidSetup{addr: addr, disk: true, lines: periods})
	s.fetchAll(t, q.client, targets(0, objects))
	// A digest that the Squid made while it was still storing, or makes again at the moment, lacks some.
	var listed []string
	eventually(t, time.Minute, "the Squid lists what it holds, and the peer knows", func() bool {
		listed = s.listedBy(t, q)
		known := 0
		for _, target := range listed {
			if e, err := p.Why(admin.WhyRequest{URL: s.url + target, Header: http.Header{}}); err == nil && len(e.Matches) == 1 && e.Matches[0].Says {
				known++
			}
		}
		return len(listed) >= objects*99/100 && known >= objects*99/100
	})
	s.explained(t, p, listed[0], q.addr)
	before, fetched := p.Status().Traffic, s.Requests()
	s.fetchAll(t, p.client, listed)
	after := p.Status().Traffic
	hits := after.SiblingHits - before.SiblingHits
	t.Logf("%d URLs warmed, %d listed, %d served by the Squid, %d by the origin", objects, len(listed), hits, s.Requests()-fetched)
	if tooFew(before, after, len(listed)) {
		t.Errorf("%d of %d URLs that the Squid holds and lists came from it", hits, len(listed))
	}
	// What came from it is ours now, with its name in Cache-Status.
	answer, err := s.fetch(p.client, listed[0])
	if err != nil || !strings.HasPrefix(answer.Header.Get("Cache-Status"), "peer; hit") {
		t.Errorf("the second time: %v, %v", answer.Header, err)
	}
	s.fetchAll(t, p.client, targets(objects, objects+200))
	end := p.Status().Traffic
	if n := end.OriginFetches - after.OriginFetches; n != 200 {
		t.Errorf("%d of 200 URLs that the Squid does not hold came from the origin", n)
	}
	if end.GatewayErrors != 0 {
		t.Errorf("counters %+v", end)
	}
}

// tooFew reports whether hardly any of n objects that siblings hold came from them. On a busy
// machine there are hedges to the origin, and late siblings are suspended.
func tooFew(before, after proxy.Counts, n int) bool {
	hits, hedges := after.SiblingHits-before.SiblingHits, after.Hedges-before.Hedges
	if after.SiblingErrors > before.SiblingErrors {
		return int(hits) < n/2
	}
	return int(hits+hedges) < n*99/100
}

// listedBy returns the objects that match a Squid's current digest.
func (s *site) listedBy(t *testing.T, q *squidProcess) (list []string) {
	t.Helper()
	answer, err := http.Get("http://" + q.addr + format.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	d, err := format.Read(answer.Body, answer.ContentLength, format.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for target := range s.Sizes {
		if i := strings.TrimPrefix(target, "/object/"); len(i) < 4 && d.MayContain(format.KeyOf(format.Get, s.url+target, "")) {
			list = append(list, target)
		}
	}
	return list
}

// explained checks that the admin answers describe the Squid.
func (s *site) explained(t *testing.T, p *neighbour, target, squid string) {
	t.Helper()
	e, err := p.Why(admin.WhyRequest{URL: s.url + target, Header: http.Header{}})
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Matches) != 1 || e.Matches[0].Peer != "squid@"+squid || !e.Matches[0].Says || e.Matches[0].Turn != 1 ||
		!strings.Contains(e.Text, "Asked: squid@"+squid+", then the origin") {
		t.Errorf("Why = %+v", e)
	}
}
