package gossip

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/exchange"
)

// A node sleeps until the filter changes. It publishes changes no later than if it looked at the filter
// twice in the least interval between publications, and in about as many messages. The first change after
// a rest always waits for a quarter of that interval, as it would on average until the next look.
func TestPublishingWithoutPolling(t *testing.T) {
	const step, least = 250 * time.Microsecond, 30 * time.Millisecond // least: exchange's default for few peers
	for _, row := range []struct {
		name         string
		pause, apart int // steps between bursts, and between the changes of one
		burst        int
	}{
		{"single changes", 1003, 0, 1},
		{"a short burst", 1601, 3, 5},
		{"the objects of a page", 2003, 9, 40},
		{"some changes all the time", 0, 17, 1000},
		{"many changes all the time", 0, 3, 1000},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				defer c.close()
				n := c.start(c.config("p", "10.0.0.1"))
				n.with(func(e *exchange.Engine) { e.PeerUp(time.Now(), "q", 1) }) // which gets and asks for nothing
				var polled, sleeping delays
				filter := newFilter(t, testSecret)
				engine := exchange.New(exchange.Config{Name: "p", Incarnation: 1}, time.Now())
				publish := func() {
					f, d := filter.Filter().AdvanceDelta()
					engine.Publish(time.Now(), f, d)
				}
				publish()
				engine.PeerUp(time.Now(), "q", 1)
				last := published(n)
				longest, next, made := time.Duration(0), row.pause, 0
				for i := range int(20 * time.Second / step) {
					time.Sleep(step)
					synctest.Wait()
					if head := published(n); head != last {
						longest = max(longest, sleeping.all())
						last = head
					}
					if time.Duration(i)*step%(least/2) == 0 && engine.PublishIn(time.Now(), filter.Filter().Changed()) == 0 {
						publish()
						polled.all()
					}
					if i == next {
						k := key("p", made)
						filter.Add(k)
						n.Holdings().Keys().Add(k)
						polled.waiting, sleeping.waiting = append(polled.waiting, time.Now()), append(sleeping.waiting, time.Now())
						if made++; made%row.burst == 0 {
							next += row.pause
						}
						next += max(row.apart, 1)
					}
				}
				if sleeping.mean() > polled.mean()+max(5*step, polled.mean()/50) || float64(sleeping.times) > 1.2*float64(polled.times) {
					t.Errorf("%d changes: published after %v on average, %d times; polling: %v, %d times", made, sleeping.mean(), sleeping.times, polled.mean(), polled.times)
				}
				if row.burst == 1 && (longest < least/4-step || longest > least/4+step) {
					t.Errorf("a single change was published after %v, want %v", longest, least/4)
				}
			})
		})
	}
}

// delays has the changes that one of two publishers made.
type delays struct {
	waiting        []time.Time // when they came
	total          time.Duration
	changes, times int
}

// all counts a publication of all that wait, and returns how long the first waited.
func (p *delays) all() (longest time.Duration) {
	for _, at := range p.waiting {
		p.total += time.Since(at)
		longest = max(longest, time.Since(at))
	}
	p.changes += len(p.waiting)
	p.times++
	p.waiting = nil
	return longest
}

func (p *delays) mean() time.Duration { return p.total / time.Duration(max(1, p.changes)) }

// What is no change by adding, such as a rebuilt filter, wakes the publisher as well.
func TestRebuiltFilterIsPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		n := c.start(c.config("p", "10.0.0.1"))
		time.Sleep(time.Minute)
		before := published(n)
		held := n.Holdings().Keys()
		if err := held.Inside().Rebuild(held.Geometry()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got := published(n); got.Epoch != before.Epoch+1 {
			t.Errorf("a second after a rebuild, version %+v is published; before it was %+v", got, before)
		}
	})
}

// TestNobodyToPublishTo: changes of a node without a live peer wait as long as they may, or until there is one.
func TestNobodyToPublishTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.startMany(1)
		n := c.nodes["p1"]
		time.Sleep(time.Minute)
		before, began, times := published(n), time.Now(), 0
		for i := range 10_000 { // many come at once
			n.Holdings().Keys().Add(key("p1", i))
			if i%100 == 0 {
				time.Sleep(200 * time.Millisecond)
			}
			if now := published(n); now != before {
				before = now
				times++
			}
		}
		if most := int(time.Since(began)/(5*time.Second)) + 1; times == 0 || times > most {
			t.Errorf("changes of %v were published %d times, want up to %d", time.Since(began), times, most)
		}
		time.Sleep(6 * time.Second)
		n.Holdings().Keys().Add(key("p1", 10_000))
		time.Sleep(time.Second)
		if before = published(n); n.Holdings().Keys().Inside().Filter().Changed() == 0 {
			t.Fatal("a change was published within a second")
		}
		cfg := c.config("p2", "10.0.0.2")
		cfg.Join = []string{"10.0.0.1:7946"}
		c.start(cfg)
		time.Sleep(time.Second)
		if published(n) == before || n.Holdings().Keys().Inside().Filter().Changed() != 0 {
			t.Error("a change that had waited was not published within a second after a peer had joined")
		}
	})
}
