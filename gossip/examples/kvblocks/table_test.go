package kvblocks

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/index"
	"github.com/summarycache/summarycache/sim/cputime"
)

var full = flag.Bool("full", false, "the table for 64 pods of 10,164 blocks, not for 8")

// A fleet is pods that hold the contexts of conversations, and what is true of them.
type fleet struct {
	workers []*Worker
	names   []string
	prompts [][]BlockHash // the next of conversations: a context and four blocks that nobody has
	holds   []map[BlockHash]bool
	lru     [][]BlockHash // of each pod, the longest unused first
	entries int
}

const perPod, systemBlocks = 10_164, 8

// newFleet fills pods. A conversation begins with one of 50 system prompts, is held by one pod or two, and the last third of
// its context is on the host's memory and the rest on the GPU's.
func newFleet(t *testing.T, pods int) *fleet {
	random := rand.New(rand.NewPCG(1, 2))
	f := &fleet{holds: make([]map[BlockHash]bool, pods), lru: make([][]BlockHash, pods)}
	systems := make([][]BlockHash, 50)
	for i := range systems {
		for range systemBlocks {
			systems[i] = append(systems[i], BlockHash(random.Uint64()))
		}
	}
	for i := range pods {
		f.names = append(f.names, fmt.Sprintf("pod-%02d", i))
		f.workers = append(f.workers, &Worker{Seed: seed, Blocks: perPod * 2 / 3})
		f.holds[i] = map[BlockHash]bool{}
	}
	for pod := 0; pod < pods; {
		context := slices.Clone(systems[random.IntN(len(systems))])
		for range 20 + random.IntN(64) {
			context = append(context, BlockHash(random.Uint64()))
		}
		at := []int{pod}
		if random.IntN(10) == 0 {
			at = append(at, random.IntN(pods))
		}
		for _, p := range at {
			f.add(t, p, context[:len(context)*2/3], "gpu")
			f.add(t, p, context[len(context)*2/3:], "cpu")
		}
		for range 4 {
			context = append(context, BlockHash(random.Uint64()))
		}
		f.prompts = append(f.prompts, context)
		if len(f.holds[pod]) >= perPod {
			pod++
		}
	}
	return f
}

func (f *fleet) add(t *testing.T, pod int, keys []BlockHash, tier string) {
	keys = slices.DeleteFunc(slices.Clone(keys), func(b BlockHash) bool { return f.holds[pod][b] })
	if len(keys) == 0 {
		return
	}
	for _, b := range keys {
		f.holds[pod][b] = true
	}
	if tier == "gpu" {
		f.lru[pod] = append(f.lru[pod], keys...)
	}
	f.entries += len(keys)
	if err := f.workers[pod].Add(t.Context(), nil, keys, entries(PodEntry{PodIdentifier: f.names[pod], DeviceTier: tier})); err != nil {
		t.Fatal(err)
	}
}

// prefix returns how much of a prompt a pod holds.
func (f *fleet) prefix(pod int, prompt []BlockHash) int {
	if n := slices.IndexFunc(prompt, func(b BlockHash) bool { return !f.holds[pod][b] }); n >= 0 {
		return n
	}
	return len(prompt)
}

// spent returns the processor time that f takes.
func spent(f func()) time.Duration {
	began := cputime.Used()
	f()
	return cputime.Used() - began
}

// TestTable prints the table of the package's comment: go test -v -run Table -full.
func TestTable(t *testing.T) {
	pods, rounds := 8, 50
	if *full {
		pods, rounds = 64, 400
	}
	f := newFleet(t, pods)
	var snapshots []Digest
	bytes := 0
	for _, w := range f.workers {
		w.Next(true, func(d Digest) {
			d.Message = d.Since(digest.Version{})
			bytes += len(d.Message)
			snapshots = append(snapshots, d)
		})
	}
	var r *Router
	restart := spent(func() {
		r = NewRouter(seed)
		for _, d := range snapshots {
			if err := d.Give(r.Handle); err != nil {
				t.Fatal(err)
			}
		}
	})
	memory := r.index.MemoryBytes()
	for _, replica := range r.replicas {
		memory += replica.Filter().MemoryBytes()
	}
	perEntry := float64(memory) / float64(f.entries)
	t.Logf("%d pods, %d entries, %d digests", pods, f.entries, len(snapshots))
	t.Logf("memory an entry, replicas and index: %.2f bytes", perEntry)
	t.Logf("restart to full view: %v of CPU, %d bytes received, %.2f bits an entry", restart.Round(time.Millisecond), bytes, 8*float64(bytes)/float64(f.entries))
	if perEntry > 6 && *full {
		t.Errorf("%.2f bytes an entry", perEntry)
	}

	same, best, chosen, optimum := 0, 0, 0, 0
	for _, prompt := range f.prompts {
		exact := 0
		for pod := range f.names {
			if f.prefix(pod, prompt) > f.prefix(exact, prompt) {
				exact = pod
			}
		}
		found := r.Prefixes(prompt)
		pod := slices.Index(f.names, found[0].Peer) // of equal ones the first by name
		for _, p := range found {
			if other := slices.Index(f.names, p.Peer); p.Keys == found[0].Keys && other < pod {
				pod = other
			}
		}
		if pod == exact {
			same++
		}
		if f.prefix(pod, prompt) == f.prefix(exact, prompt) {
			best++
		}
		chosen, optimum = chosen+f.prefix(pod, prompt), optimum+f.prefix(exact, prompt)
	}
	n := float64(len(f.prompts))
	t.Logf("%d prompts: %.2f %% go to the same pod, %.2f %% to one that holds as much; it holds %.3f blocks, the best one %.3f",
		len(f.prompts), 100*float64(same)/n, 100*float64(best)/n, float64(chosen)/n, float64(optimum)/n)
	if float64(same) < 0.999*n {
		t.Errorf("%d of %v prompts go to the same pod", same, n)
	}

	sent, size := 0, 0
	var publish, handle time.Duration
	random := rand.New(rand.NewPCG(3, 4))
	for range rounds {
		var messages []Digest
		publish += spent(func() {
			for pod, w := range f.workers {
				gone := f.lru[pod][:8]
				e := entries(gpu(f.names[pod]))
				for _, b := range gone {
					w.Evict(t.Context(), b, RequestKey, e)
				}
				for range 8 {
					f.lru[pod] = append(f.lru[pod], BlockHash(random.Uint64()))
				}
				w.Add(t.Context(), nil, f.lru[pod][len(f.lru[pod])-8:], e)
				w.Next(false, func(d Digest) { messages = append(messages, d) })
			}
		})
		for pod := range f.workers {
			for i := range 8 {
				delete(f.holds[pod], f.lru[pod][i])
				f.holds[pod][f.lru[pod][len(f.lru[pod])-1-i]] = true
			}
			f.lru[pod] = f.lru[pod][8:]
		}
		handle += spent(func() {
			for _, d := range messages {
				if err := d.Give(r.Handle); err != nil {
					t.Fatal(err)
				}
			}
		})
		for _, d := range messages {
			sent, size = sent+1, size+len(d.Message)
		}
	}
	t.Logf("%d messages of 8 blocks out and 8 in: %.1f µs of the router's CPU, %.2f million changes a second; %.1f µs of the worker's; %.1f bits a change",
		sent, handle.Seconds()*1e6/float64(sent), 16*float64(sent)/handle.Seconds()/1e6, publish.Seconds()*1e6/float64(sent), 8*float64(size)/float64(16*sent))
	for pod, held := range f.holds {
		for b := range held {
			if !slices.ContainsFunc(r.Prefixes(blocks(b)), func(p index.Prefix) bool { return p.Peer == f.names[pod] }) {
				t.Fatalf("%s holds a block, and it is not found there", f.names[pod])
			}
		}
	}

	long := make([]BlockHash, 2048)
	for i := range long {
		long[i] = BlockHash(random.Uint64())
	}
	for i, n := range []int{8, 700, 1500, 2044} {
		f.add(t, i, long[:n], "gpu")
		f.workers[i].Next(false, func(d Digest) { d.Give(r.Handle) })
	}
	for _, prompts := range [][][]BlockHash{f.prompts, {long}} {
		calls := max(1000, len(prompts))
		took := spent(func() {
			for i := range calls {
				r.Prefixes(prompts[i%len(prompts)])
			}
		})
		t.Logf("longest prefixes of a prompt like these, of %d blocks: %.1f µs", len(prompts[0]), took.Seconds()*1e6/float64(calls))
	}
	took := spent(func() {
		for _, prompt := range f.prompts[:100] {
			if _, err := r.Lookup(t.Context(), prompt[:min(64, len(prompt))], nil); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Logf("Lookup of up to 64 blocks: %.0f µs", took.Seconds()*1e4)
}
