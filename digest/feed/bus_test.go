package feed_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/feed"
)

// A bus loses, repeats, delays and damages messages.
type bus struct {
	rng            *rand.Rand
	lost, repeated float64
	damaged        float64
	late           time.Duration // at most
}

func (b *bus) send(message []byte, to func([]byte)) {
	copies := 1
	if b.rng.Float64() < b.lost {
		copies = 0
	}
	for b.rng.Float64() < b.repeated {
		copies++
	}
	for range copies {
		got := append([]byte(nil), message...)
		if b.rng.Float64() < b.damaged {
			got[b.rng.IntN(len(got))] ^= 1 << b.rng.IntN(8)
		}
		time.AfterFunc(time.Duration(b.rng.Int64N(int64(b.late))), func() { to(got) })
	}
}

// A world is a publisher and replicas on a bus. Everything runs in one goroutine, except
// timers. The bubble runs these one at a time only if their times differ, so box orders them.
type world struct {
	t        *testing.T
	bus      bus
	box      chan func()
	held     *digest.Set
	keys     []digest.Key
	p        *feed.Publisher
	seen     map[digest.Version]bool // what was ever published
	replicas []*feed.Replica
	errors   int
}

const seed = 0x5eed

// begin starts a new life of the cache, which is empty.
func (w *world) begin(epoch uint64) {
	held, err := digest.NewSet(digest.Geometry{Bits: 1 << 22, Hashes: 1, Seed: seed}, epoch)
	if err != nil {
		w.t.Fatal(err)
	}
	w.held, w.keys = held, nil
	w.change(200)
	w.p = feed.NewPublisher(held, 1<<14)
	w.seen[held.Filter().Current().Version()] = true
}

func (w *world) change(n int) {
	for range n {
		if len(w.keys) > 300 {
			i := w.bus.rng.IntN(len(w.keys))
			w.held.Remove(w.keys[i])
			w.keys[i] = w.keys[len(w.keys)-1]
			w.keys = w.keys[:len(w.keys)-1]
		}
		k := digest.Key(w.bus.rng.Uint64())
		w.held.Add(k)
		w.keys = append(w.keys, k)
	}
}

func (w *world) publish() {
	message := w.p.Next()
	w.seen[w.held.Filter().Current().Version()] = true
	for _, r := range w.replicas {
		w.bus.send(message, w.to(r))
	}
}

// to delivers messages to r.
func (w *world) to(r *feed.Replica) func([]byte) {
	return func(b []byte) {
		w.box <- func() {
			before := r.Filter()
			d, changed, err := r.Handle(b)
			after := r.Filter()
			switch {
			case err != nil && w.bus.damaged == 0:
				w.t.Errorf("Handle = %v", err)
			case err != nil:
				w.errors++
			}
			switch {
			case changed != (before != after):
				w.t.Errorf("changed = %v, but from %p to %p", changed, before, after)
			case !changed:
			case !w.seen[after.Version()]:
				w.t.Errorf("a replica reached %v, which nobody published", after.Version())
			case d != nil && (d.Base() != before.Version() || d.Target() != after.Version()):
				w.t.Errorf("a delta from %v to %v led from %v to %v", d.Base(), d.Target(), before.Version(), after.Version())
			}
		}
	}
}

func (w *world) ask() {
	for _, r := range w.replicas {
		if v, any := r.Needs(); any {
			// Requests are lost like answers.
			w.bus.send([]byte(v.String()), func(b []byte) {
				w.box <- func() {
					if v, err := digest.ParseVersion(string(b)); err == nil {
						w.bus.send(w.p.Since(v), w.to(r))
					}
				}
			})
		}
	}
}

// run lets some time pass, in which the cache changes, publishes and answers requests.
func (w *world) run(d time.Duration, changes int) {
	ticks := time.NewTicker(200 * time.Millisecond)
	defer ticks.Stop()
	end := time.After(d)
	for {
		select {
		case do := <-w.box:
			do()
		case <-ticks.C:
			w.change(changes)
			w.publish()
			w.ask()
		case <-end:
			return
		}
	}
}

func (w *world) agreed(what string) {
	w.t.Helper()
	want := w.held.Filter().Current().Version()
	for i, r := range w.replicas {
		if f := r.Filter(); f == nil || f.Version() != want {
			w.t.Errorf("%s: replica %d has not reached %v", what, i, want)
		} else if _, any := r.Needs(); any {
			w.t.Errorf("%s: replica %d has the current version, and still needs something", what, i)
		}
	}
}

// TestBus: over a bus that loses, repeats, reorders and damages messages, every replica holds
// only what was published, and reaches the current version: after changes, a rebuild, a
// restart, and a restart whose clock went back.
func TestBus(t *testing.T) {
	for s := range uint64(8) {
		t.Run(fmt.Sprint("seed=", s), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(s, 7))
				w := &world{t: t, box: make(chan func(), 1<<16), seen: map[digest.Version]bool{}, bus: bus{
					rng: rng, lost: rng.Float64() / 2, repeated: rng.Float64() / 3, late: time.Duration(1 + rng.Int64N(int64(2*time.Second)))}}
				if s%3 == 2 {
					w.bus.damaged = rng.Float64() / 4
				}
				for range 4 {
					w.replicas = append(w.replicas, feed.NewReplica(digest.Limits{Seed: seed}))
				}
				settle := func(what string) {
					w.run(20*time.Second, 3)
					w.run(40*time.Second, 0)
					w.agreed(what)
				}
				w.begin(1000)
				settle("at first")
				if err := w.held.Inside().Rebuild(w.held.Geometry()); err != nil {
					t.Fatal(err)
				}
				settle("after a rebuild")
				w.begin(2000)
				settle("after a restart")
				w.begin(2000)
				settle("after a restart with the same epoch")
				w.begin(500)
				settle("after a restart with a smaller epoch")
				if (w.errors > 0) != (w.bus.damaged > 0) {
					t.Errorf("%d errors", w.errors)
				}
				time.Sleep(w.bus.late) // wait for the messages under way
			})
		})
	}
}
