package digest

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A stallMeter is a writer that replaces keys one after another and records how long each
// change took, including the reading of the clock.
type stallMeter struct {
	keys  []Key
	pause time.Duration // between two changes, like a cache that also does other work
	took  []time.Duration
}

func (m *stallMeter) run(c *Set, stop *atomic.Bool) {
	for i, on := 0, true; on; i, on = (i+1)%len(m.keys), !stop.Load() { // once at least
		begin := time.Now()
		c.Remove(m.keys[i])
		removed := time.Now()
		m.keys[i] = Key(mix(uint64(m.keys[i]) + golden))
		c.Add(m.keys[i])
		added := time.Now()
		m.took = append(m.took, removed.Sub(begin), added.Sub(removed))
		for m.pause > 0 && time.Since(added) < m.pause {
		}
	}
}

// report reports the longest change, and the time that one change in a thousand exceeds.
func (m *stallMeter) report(b *testing.B, who string) {
	slices.Sort(m.took)
	n := len(m.took)
	b.ReportMetric(float64(m.took[n-1].Nanoseconds())/1e3, who+"-max-µs")
	b.ReportMetric(float64(m.took[n-1-n/1000].Nanoseconds())/1e3, who+"-p99.9-µs")
}

// roomFor returns an empty slice whose memory has been touched, so that the meter does not
// measure page faults.
func roomFor(n int) []time.Duration {
	room := make([]time.Duration, n)
	for i := range room {
		room[i] = 1
	}
	return room[:0]
}

// BenchmarkWriterStall reports the longest change of one of a million keys while filters were
// frozen or rebuilt, and while nothing else happened. The latter is due to the machine and must
// be subtracted. The promise is a millisecond. It needs two cores.
func BenchmarkWriterStall(b *testing.B) {
	for _, g := range million {
		works := map[string]func(*Set){
			"Advance": func(c *Set) { c.Filter().Advance() },
			"Rebuild": func(c *Set) {
				if err := c.Inside().Rebuild(g); err != nil {
					b.Fatal(err)
				}
			},
		}
		for _, what := range []string{"Advance", "Rebuild"} {
			for _, pause := range []time.Duration{0, 20 * time.Microsecond} {
				b.Run(fmt.Sprintf("%s/%s/pause=%v", name(g), what, pause), func(b *testing.B) {
					keys := randomKeys(random(1), benchKeys)
					c := newSet(b, g, keys...)
					c.Filter().Advance()
					writes := slices.Clone(keys[benchKeys/2:])
					measure := func(m *stallMeter, work func()) time.Duration {
						var stop atomic.Bool
						var wg sync.WaitGroup
						wg.Go(func() { m.run(c, &stop) })
						begin := time.Now()
						work()
						stop.Store(true)
						wg.Wait()
						return time.Since(begin)
					}
					busy := &stallMeter{keys: writes, pause: pause, took: roomFor(1 << 23)}
					alone := &stallMeter{keys: writes, pause: pause, took: roomFor(1 << 23)}
					for b.Loop() {
						lasted := measure(busy, func() { works[what](c) })
						measure(alone, func() { time.Sleep(lasted) })
					}
					busy.report(b, "busy")
					alone.report(b, "alone")
				})
			}
		}
	}
}
