package main

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/index"
	"github.com/summarycache/summarycache/sim/cputime"
)

var _ = experiments.add(Experiment{
	Name:    "receive",
	Summary: "cost of a received delta, by the size of the cache: only the size of the change should matter",
	Seconds: 3,
	Flags: func(flags *flag.FlagSet) runner {
		n, f := keysFlag(flags, 10_000, 100_000, 1_000_000, 10_000_000), ratesFlag(flags, 1e-3)
		return func(ctx context.Context, job *Job) error {
			return forEach(*f, func(f float64) error { return receivedAt(ctx, job, *n, f) })
		}
	},
})

const (
	receiveReplaced = 16 // keys a delta: 32 flips
	receiveDeltas   = 500
	receiveRounds   = 5
)

func receivedAt(ctx context.Context, job *Job, sizes []int, rate float64) error {
	table := job.Table(fmt.Sprintf("cost of a received delta: %d keys replaced, f = %g, one hash", receiveReplaced, rate),
		Column{Name: "keys", Head: "n"},
		Column{Name: "bytes", Head: "bytes of the delta", Format: "%.1f", Loose: 0.02},
		Column{Name: "flips", Format: "%.1f", Loose: 0.02},
		Column{Name: "receive_us", Head: "decode and apply, CPU µs", Format: "%.1f", Loose: AnyValue},
		Column{Name: "garbage", Head: "garbage, bytes/flip", Format: "%.0f", Loose: AnyValue},
		Column{Name: "allocations", Format: "%.0f", Loose: AnyValue},
		Column{Name: "index_ns", Head: "index, CPU ns/flip", Format: "%.0f", Loose: AnyValue},
		Column{Name: "publish_us", Head: "AdvanceDelta, CPU µs", Format: "%.1f", Loose: AnyValue},
		Column{Name: "publish_garbage", Head: "its garbage, bytes/flip", Format: "%.0f", Loose: AnyValue})
	for i, n := range sizes {
		job.Progress(i, len(sizes), "n = %d", n)
		if job.Short && n > 100_000 {
			table.skip(n)
			continue
		}
		r, err := measureReceive(ctx, job, n, rate)
		if err != nil {
			return err
		}
		each, flips := float64(receiveDeltas), float64(r.flips)
		micro := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 / each }
		table.Row(n, float64(r.bytes)/each, flips/each,
			micro(r.receive.cpu), float64(r.receive.bytes)/flips, float64(r.receive.allocations)/each,
			float64(r.index.cpu.Nanoseconds())/flips,
			micro(r.publish.cpu), float64(r.publish.bytes)/flips)
	}
	table.Note("means of %d successive deltas, each decoded, verified and applied to the filter after the one before, and then to the index, which has one peer; decoding and applying are from the cheapest of %d rounds; times depend on the machine and include garbage collection", receiveDeltas, receiveRounds)
	return nil
}

// spent is the cost of some work.
type spent struct {
	cpu                time.Duration
	bytes, allocations uint64
}

func (s *spent) on(work func()) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := cputime.Used()
	work()
	s.cpu += cputime.Used() - begin
	runtime.ReadMemStats(&after)
	s.bytes += after.TotalAlloc - before.TotalAlloc
	s.allocations += after.Mallocs - before.Mallocs
}

// receiveCost is the cost of all deltas.
type receiveCost struct {
	bytes, flips            int
	publish, receive, index spent
}

func measureReceive(ctx context.Context, job *Job, n int, rate float64) (c receiveCost, err error) {
	rng := job.Rand(uint64(n))
	held, keys, base, err := filled(digest.Geometry{Bits: uint64(float64(n) / rate), Hashes: 1}, rng, n)
	if err != nil {
		return c, err
	}
	// Publish everything first, and then receive it. If they alternated, each would find
	// the other's work in the processor's caches.
	filters, messages := []*digest.Filter{base}, [][]byte(nil)
	for i := range receiveDeltas {
		if err := ctx.Err(); err != nil {
			return c, err
		}
		for range receiveReplaced {
			at := rng.IntN(n)
			held.Remove(keys[at])
			keys[at] = digest.Key(rng.Uint64())
			held.Add(keys[at])
		}
		var f *digest.Filter
		var d *digest.Delta
		c.publish.on(func() { f, d = held.AdvanceDelta() })
		message, err := d.AppendTo(nil, filters[i])
		if err != nil {
			return c, err
		}
		filters, messages = append(filters, f), append(messages, message)
		c.bytes += len(message)
		c.flips += d.Len()
	}
	deltas := make([]*digest.Delta, receiveDeltas)
	for range receiveRounds {
		var round spent
		last := base
		round.on(func() {
			for i, message := range messages {
				if deltas[i], err = digest.DecodeDelta(message, last, digest.Limits{}); err != nil {
					return
				}
				if last, err = deltas[i].Apply(last); err != nil {
					return
				}
			}
		})
		if err != nil {
			return c, err
		}
		if c.receive.cpu == 0 || round.cpu < c.receive.cpu {
			c.receive = round
		}
	}
	x := index.New()
	if err := x.Set("peer", base); err != nil {
		return c, err
	}
	c.index.on(func() {
		for i, d := range deltas {
			if err = x.Apply("peer", d, filters[i+1]); err != nil {
				return
			}
		}
	})
	return c, err
}
