package sibling

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A machine runs all caches and the origin of a test. Requests wait for one of its processors.
type machine chan struct{}

func (m machine) runs(cost time.Duration, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case m <- struct{}{}:
		case <-r.Context().Done():
			return
		}
		time.Sleep(cost)
		<-m
		h(w, r)
	}
}

// picking is a world whose locator returns one sibling for each object.
type picking struct {
	*world
	mu   sync.Mutex
	rand *rand.Rand
}

func (p *picking) Candidates(dst []Candidate, _ string) []Candidate {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append(dst, p.known[p.rand.IntN(len(p.known))])
}

// overloaded has that many clients request objects that siblings have, one after another, on a
// machine with two processors. It returns the counters.
func overloaded(t *testing.T, clients, each int, late func() time.Duration) (s Stats, origin int) {
	w := newWorld(t, Config{})
	defer w.close()
	m := make(machine, 2)
	for range 24 {
		w.sibling(m.runs(10*time.Millisecond, holds("sibling")))
	}
	w.servers[0].Handler = m.runs(16*time.Millisecond, w.servers[0].Handler.ServeHTTP)
	l := &picking{world: w, rand: rand.New(rand.NewPCG(1, 1))}
	c, err := New(Config{Name: "me", Locator: l, HTTP: w.questions, Late: late})
	if err != nil {
		t.Fatal(err)
	}
	w.client = c
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			for k := range each {
				if _, _, err := w.get(t.Context(), fmt.Sprint("/", i, "/", k)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	return c.Stats(), w.asked()
}

// On an overloaded machine, where requests take longer than the deadline of 500 ms, siblings
// continue to answer, and the origin is spared.
func TestOverload(t *testing.T) {
	for clients, mostOrigin := range map[int]float64{20: 0, 120: 0.2, 200: 0.2} {
		if clients > 120 && testing.Short() {
			continue // with the race detector
		}
		t.Run(fmt.Sprint("clients=", clients), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const each = 20
				s, origin := overloaded(t, clients, each, nil)
				t.Logf("%d requests: %d to siblings, %d hits, %d lost; %d to the origin", clients*each, s.Asked, s.Hits, s.Errors, origin)
				if share := float64(origin) / float64(clients*each); share > mostOrigin {
					t.Errorf("%.0f %% of the requests went to the origin, want at most %.0f", 100*share, 100*mostOrigin)
				}
			})
		})
	}
}

// The deadline does not change if one sibling hangs. If all siblings become slow, it follows them,
// up to three times its setting, and returns to it.
func TestDeadlineFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		w.client.hedge = budget{}
		defer w.close()
		var d, origin delay
		origin.set(300 * time.Millisecond) // not so fast that it is asked first
		w.servers[0].Handler = after(&origin, "origin")
		d.set(time.Millisecond)
		for range 4 {
			w.sibling(after(&d, "x"))
		}
		healthy := w.known
		var hung delay
		hung.set(time.Hour)
		w.sibling(after(&hung, "x"))
		bad := w.known[4:]
		floor := w.client.cfg.Timeout
		for i := range 100 {
			w.known = healthy[i%4 : i%4+1]
			if i%5 == 0 {
				w.known = bad
			}
			w.learn(1)
		}
		if deadline, lost := w.client.Inside().Load(); deadline != floor || lost > 0.1 {
			t.Errorf("beside one that hangs: %v, %v lost", deadline, lost)
		}
		time.Sleep(recentFor)
		d.set(700 * time.Millisecond)
		before := w.client.Stats()
		for i := range 40 {
			w.known = healthy[i%4 : i%4+1]
			w.learn(1)
		}
		after := w.client.Stats()
		if deadline, lost := w.client.Inside().Load(); deadline < 900*time.Millisecond || after.Hits-before.Hits < 20 {
			t.Errorf("with all slow: %v, %v lost, %d hits of 40", deadline, lost, after.Hits-before.Hits)
		}
		time.Sleep(recentFor + time.Second)
		if deadline, lost := w.client.Inside().Load(); deadline != floor || lost != 0 {
			t.Errorf("half a minute later: %v, %v lost", deadline, lost)
		}
		d.set(time.Hour)
		for i := range 60 {
			w.known = healthy[i%4 : i%4+1]
			w.learn(1)
		}
		end := w.client.Stats()
		if deadline, lost := w.client.Inside().Load(); deadline > deadlineMost*floor {
			t.Errorf("with all hung: %v, %v lost", deadline, lost)
		}
		if asked := end.Asked - after.Asked; asked > 40 || asked < 5 {
			t.Errorf("with all hung %d of 60 are asked", asked)
		}
	})
}

// If packets are lost, some answers arrive after one or two retransmissions, and some not in
// time. The deadline does not change.
func TestDeadlineUnderLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		defer w.close()
		for i := range 64 {
			peer, now, recent := fmt.Sprint(i%4), time.Now(), &w.client.cfg.Health.recent
			switch i % 10 {
			case 0, 5:
				recent.add(peer, 500*time.Millisecond, true, now)
			case 1, 6:
				recent.add(peer, 400*time.Millisecond, false, now)
			default:
				recent.add(peer, 50*time.Millisecond, false, now)
			}
		}
		if deadline, lost := w.client.Inside().Load(); deadline != w.client.cfg.Timeout || lost < 0.15 || lost > 0.25 {
			t.Errorf("with every fifth lost and every fifth late: %v, %v lost", deadline, lost)
		}
	})
}

// A process that runs late itself blames no sibling, and waits for longer.
func TestLateBlamesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := time.Duration(0)
		w := newWorld(t, Config{Late: func() time.Duration { return late }})
		w.client.hedge = budget{}
		defer w.close()
		var d, origin delay
		origin.set(300 * time.Millisecond)
		w.servers[0].Handler = after(&origin, "origin")
		d.set(time.Hour)
		w.sibling(after(&d, "x"))
		w.learn(1)
		if got := w.recorded(); got != "p1:failed" {
			t.Errorf("recorded %q", got)
		}
		time.Sleep(firstSuspension)
		late = 300 * time.Millisecond
		start := time.Now()
		w.learn(1)
		if took := time.Since(start); took < time.Second || took > deadlineMost*defaultTimeout+time.Second {
			t.Errorf("waited for %v while 300 ms late", took)
		}
		if got, s := w.recorded(), w.client.Stats(); got != "p1:failed" || s.Excused != 1 || s.Errors != 2 {
			t.Errorf("recorded %q, %+v", got, s)
		}
	})
}
