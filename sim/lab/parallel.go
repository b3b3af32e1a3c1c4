package lab

import (
	"math/bits"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Each calls work(0) … work(n-1) on all cores, in no particular order, and prints progress. It
// returns the first error, after which it begins no other call.
func (j *Job) Each(n int, what string, work func(i int) error) error {
	var next, done atomic.Int64
	var failed error
	var once sync.Once
	var wg sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := work(i); err != nil {
					once.Do(func() { failed = err })
					next.Store(int64(n))
				}
				done.Add(1)
			}
		})
	}
	finished := make(chan struct{})
	go func() {
		wg.Wait()
		close(finished)
	}()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-finished:
			return failed
		case <-tick.C:
			j.Progress("%s: %d of %d", what, done.Load(), n)
		}
	}
}

// Source returns random numbers that depend only on the job's seed and the labels, and not on
// the core that does the work.
func (j *Job) Source(labels ...uint64) *rand.PCG {
	hi, lo := Mix64(j.Seed+Golden64), Mix64(j.Seed)
	for _, label := range labels {
		hi, lo = Mix64(lo+label+Golden64), Mix64(hi^label)
	}
	return rand.NewPCG(hi, lo)
}

// Below returns a uniform number in [0, m) by multiplication: the bias, m/2^64,
// is beyond measuring.
func Below(rng rand.Source, m uint64) uint64 {
	p, _ := bits.Mul64(rng.Uint64(), m)
	return p
}

const Golden64 = 0x9e3779b97f4a7c15 // 2^64 over the golden ratio

// Mix64 is the finaliser of splitmix64.
func Mix64(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

func High(a, b uint64) uint64 {
	h, _ := bits.Mul64(a, b)
	return h
}
