//go:build unix

package main

import (
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/squid"
	"github.com/summarycache/summarycache/sim/workload"
)

// A Squid and a peer share a load, and most objects that either holds are fetched from the origin
// once. The Squid's clock runs twenty times as fast as ours, so that its periods of 60 and 300
// seconds take three and fifteen. Its digest is fetched twice in each period, since our clock is
// not accelerated.
func TestMixedPair(t *testing.T) {
	if !*long {
		t.Skip("takes two minutes: -long")
	}
	const (
		requests, objects = 20_000, 5000
		speed             = 20
		lasts             = 100 * time.Second // 2,000 of the Squid's
	)
	s := newSite(t, objects+1, 1000)
	addr := freeAddr(t)
	p := besidesAt(t, t.TempDir(), "127.0.0.1:0", squid.Config{MinInterval: 60 * time.Second / speed / 2, MaxInterval: 60 * time.Second / speed / 2}, addr)
	q := startSquid(t, squidSetup{addr: addr, disk: true, speed: speed, lines: []string{
		siblingLine(p.Addresses().Listen), "digest_rebuild_period 60 seconds", "digest_rewrite_period 60 seconds"}})

	trace := workload.Synthetic(workload.Model{Requests: requests, Objects: objects, Exponent: 0.9, Seed: 9})
	clients := []*http.Client{p.client, q.client}
	random := rand.New(rand.NewPCG(9, 9))
	var (
		failed atomic.Int64
		wg     sync.WaitGroup
	)
	began := time.Now()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for i := 0; i < requests; {
		<-tick.C
		for due := int(time.Since(began) * requests / lasts); i < min(due, requests); i++ {
			client, target := clients[random.IntN(2)], trace.Requests[i].Key
			wg.Go(func() {
				if _, err := s.fetch(client, target); err != nil {
					if failed.Add(1) == 1 {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	from := make(map[string]int)
	for _, l := range q.log() {
		from[l.from]++
	}
	tally, counts, exchange := s.Tally(), p.Status().Traffic, p.Status().Exchange
	share := func(n int) float64 { return 100 * float64(n) / requests }
	t.Logf("%d requests in %v: %.2f %% reached the origin, the floor is %.2f %%", requests, time.Since(began).Round(time.Second),
		share(tally.Requests), share(tally.Objects))
	t.Logf("peer: %d asked of the Squid, %d of them in vain, %d hits; %d digests given out", counts.SiblingRequests, counts.FalseHits,
		counts.SiblingHits, exchange.SquidSent)
	t.Logf("peer answered %d of the Squid's questions and closed %d; the Squid's answers came from %v", counts.ServedToSiblings,
		counts.NotServedToSiblings, from)
	if n := failed.Load(); n > 0 {
		t.Errorf("%d requests failed", n)
	}
	if share(tally.Requests) > 20.5 {
		t.Errorf("%.2f %% of the requests reached the origin, want at most 20.5", share(tally.Requests))
	}
}

// A Squid survives all changes of a peer beside it: the peer comes and goes, holds much and
// nothing, and the Squid is reconfigured.
func TestSquidOutlivesChurn(t *testing.T) {
	const speed = 100 // so that a digest is fetched every three seconds
	if !*long {
		t.Skip("takes a minute: -long")
	}
	const lasts, objects = 45 * time.Second, 5000
	s := newSite(t, objects, 300)
	listen, addr := freeAddr(t), freeAddr(t)
	quick := squid.Config{MinInterval: 100 * time.Millisecond, MaxInterval: time.Second}
	dir := t.TempDir()
	p := besidesAt(t, dir, listen, quick, addr)
	s.fetchAll(t, p.client, targets(0, 100))
	q := startSquid(t, squidSetup{addr: addr, disk: true, speed: speed, lines: []string{siblingLine(listen),
		"digest_rebuild_period 60 seconds", "digest_rewrite_period 60 seconds"}})
	pid := q.cmd.Process.Pid
	random := rand.New(rand.NewPCG(6, 6))
	digests, lives := int64(0), 1
	for began := time.Now(); time.Since(began) < lasts; lives++ {
		s.fetchAll(t, p.client, some(random, objects, objects/10))
		for life := time.Now(); time.Since(life) < 4*time.Second; { // longer than the Squid's digest lasts
			s.fetchAll(t, q.client, some(random, objects, 100))
		}
		digests += p.Status().Exchange.SquidSent
		p.Close()
		s.fetchAll(t, q.client, some(random, objects, 50))
		if lives%3 == 0 {
			os.RemoveAll(dir)
		}
		if lives%4 == 0 {
			q.cmd.Process.Signal(syscall.SIGHUP)
		}
		p = besidesAt(t, dir, listen, quick, addr)
	}
	from := make(map[string]int)
	for _, l := range q.log() {
		from[l.from]++
	}
	t.Logf("%d lives of the peer, %d digests fetched; the Squid's answers came from %v", lives, digests, from)
	if !q.lives() || q.cmd.Process.Pid != pid {
		t.Errorf("the Squid ended: %v", q.err)
	}
	if digests < int64(lives-1)/2 || from["CD_SIBLING_HIT"] == 0 {
		t.Errorf("%d digests in %d lives: the Squid had no part in it", digests, lives)
	}
}

// some returns n objects.
func some(random *rand.Rand, of, n int) (list []string) {
	for range n {
		list = append(list, object(random.IntN(of)))
	}
	return list
}
