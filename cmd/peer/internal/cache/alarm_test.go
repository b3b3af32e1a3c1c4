package cache

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// sleeperFunc is woken by a call.
type sleeperFunc func()

func (f sleeperFunc) wakeUp() { f() }

// TestAlarms: whoever is silenced in time is not woken, nor by an alarm that was another's
// before, and everybody else once and in time. At that very moment both may be.
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
					time.Sleep(time.Microsecond) // for what may be under way
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
