package engine

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// sleeperFunc is a function that is called to wake the sleeper.
type sleeperFunc func()

func (f sleeperFunc) wakeUp() { f() }

// TestAlarms: a sleeper whose alarm is silenced in time is not woken, not even by an alarm that
// was another's before. Any other sleeper is woken once and in time. If an alarm is silenced just
// when it goes off, its sleeper may be woken or not.
func TestAlarms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Cache{}
		var all sync.WaitGroup
		rng := rand.New(rand.NewPCG(1, 2))
		for range 300 {
			after, silenced := time.Duration(rng.IntN(20)+1)*time.Second, time.Duration(rng.IntN(20)+1)*time.Second
			all.Go(func() {
				for range 10 {
					woken := make(chan time.Duration, 2)
					start := time.Now()
					a := c.alarm(sleeperFunc(func() { woken <- time.Since(start) }), after)
					time.Sleep(silenced)
					c.silence(a)
					time.Sleep(time.Microsecond) // for alarms that are going off
					switch {
					case silenced < after && len(woken) > 0:
						t.Errorf("silenced after %v, woken after %v", silenced, <-woken)
					case silenced > after && len(woken) != 1:
						t.Errorf("woken %d times after %v, want once", len(woken), after)
					case silenced > after:
						if at := <-woken; at != after {
							t.Errorf("woken after %v, want %v", at, after)
						}
					}
				}
			})
		}
		all.Wait()
	})
}
