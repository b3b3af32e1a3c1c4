package kvblocks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/feed"
	"github.com/summarycache/summarycache/digest/index"
)

// An Index says which pods hold the blocks of a prompt. It is llm-d's kvblock.Index; sets.Set[string] is such a map.
type Index interface {
	// Lookup returns the entries of those of keys that have any, of all pods or of some. None that holds a block is
	// missing, and about one look-up in a thousand finds a digest in vain.
	Lookup(ctx context.Context, keys []BlockHash, pods map[string]struct{}) (map[BlockHash][]PodEntry, error)
	// Add adds blocks to entries. If the engine has names for them, each stands for its share of keys: for one, for
	// several or for the same as its neighbours.
	Add(ctx context.Context, engine, keys []BlockHash, entries []PodEntry) error
	// Evict removes a block from entries, or those for which a name of the engine stands.
	Evict(ctx context.Context, key BlockHash, of KeyType, entries []PodEntry) error
	// GetRequestKey returns the last block for which a name of the engine stands.
	GetRequestKey(ctx context.Context, engine BlockHash) (BlockHash, error)
	// Clear removes all blocks from a pod.
	Clear(ctx context.Context, pod string) error
}

// A BlockHash is a hash of a block's tokens and of all before them.
type BlockHash uint64

// A KeyType says whether a key is a name of the engine.
type KeyType int

const (
	EngineKey KeyType = iota
	RequestKey
)

// A PodEntry is a tier of a pod, or a part of it. There is a digest for each.
type PodEntry struct {
	PodIdentifier, DeviceTier string
	Speculative               bool // expected, since the pod was sent a prompt
	HasGroup                  bool
	GroupIdx                  int
}

// A Worker has the blocks of a pod: a set and a digest for each tier. It is told by the events of the engine, which may
// repeat them. It is safe for concurrent use.
type Worker struct {
	// by [digest.SeedFrom] of all that hashes depend on (model, size of blocks): others are not understood
	Seed   uint64
	Blocks uint64 // that a tier holds, about; zero means 1,000

	mu      sync.Mutex
	tiers   map[PodEntry]*tier
	engine  map[BlockHash][]BlockHash
	sweepAt int // so many in engine
}

type tier struct {
	name string
	set  *digest.Set
	feed *feed.Publisher
	sent digest.Version
}

func (w *Worker) key(b BlockHash) digest.Key { return digest.KeyOfUint64(w.Seed, uint64(b)) }

// Add implements [Index].
func (w *Worker) Add(_ context.Context, engine, keys []BlockHash, entries []PodEntry) error {
	if len(keys) == 0 || len(entries) == 0 {
		return errors.New("kvblocks: no keys or no entries to add")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tiers == nil {
		w.tiers, w.engine = map[PodEntry]*tier{}, map[BlockHash][]BlockHash{}
	}
	for _, e := range entries {
		if w.tiers[e] == nil {
			set, err := digest.PlanSet(cmp.Or(w.Blocks, 1000), 0.001, digest.Numbers, w.Seed, uint64(time.Now().UnixNano()))
			if err != nil {
				return err
			}
			w.tiers[e] = &tier{name: nameOf(e), set: set, feed: feed.NewPublisher(set, 1<<20)}
		}
		for _, k := range keys {
			w.tiers[e].set.Add(w.key(k))
		}
	}
	for i, n := 0, len(engine); i < n; i++ {
		from := i * len(keys) / n
		w.engine[engine[i]] = slices.Clone(keys[from:max(from+1, (i+1)*len(keys)/n)])
	}
	if len(w.engine) > w.sweepAt { // so that not many stand for blocks that have gone otherwise
		maps.DeleteFunc(w.engine, func(_ BlockHash, of []BlockHash) bool { return !w.held(of) })
		w.sweepAt = 2*len(w.engine) + 1000
	}
	return nil
}

// nameOf returns the name of an entry's digest: a part of the pod.
func nameOf(e PodEntry) string {
	pod := e.PodIdentifier
	e.PodIdentifier = ""
	part, _ := json.Marshal(e)
	return index.Part(pod, string(part))
}

// held reports whether any tier has one of keys.
func (w *Worker) held(keys []BlockHash) bool {
	return slices.ContainsFunc(keys, func(k BlockHash) bool {
		for _, t := range w.tiers {
			if t.set.Has(w.key(k)) {
				return true
			}
		}
		return false
	})
}

// Evict implements [Index].
func (w *Worker) Evict(_ context.Context, key BlockHash, of KeyType, entries []PodEntry) error {
	if len(entries) == 0 || of != EngineKey && of != RequestKey {
		return fmt.Errorf("kvblocks: %d entries to evict, a key of type %d", len(entries), of)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	keys := []BlockHash{key}
	if of == EngineKey {
		keys = w.engine[key]
	}
	for _, e := range entries {
		for _, k := range keys {
			if t := w.tiers[e]; t != nil {
				t.set.Remove(w.key(k))
			}
		}
	}
	if of == EngineKey && !w.held(keys) {
		delete(w.engine, key)
	}
	return nil
}

// GetRequestKey implements [Index].
func (w *Worker) GetRequestKey(_ context.Context, engine BlockHash) (BlockHash, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if keys := w.engine[engine]; len(keys) > 0 {
		return keys[len(keys)-1], nil
	}
	return 0, fmt.Errorf("kvblocks: the engine's name %d stands for no block", engine)
}

// Clear implements [Index].
func (w *Worker) Clear(_ context.Context, pod string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for e, t := range w.tiers {
		if e.PodIdentifier == pod {
			t.set.Replace(func(func(digest.Key) bool) {})
		}
	}
	return nil
}

// A Digest is what to send of one: a message, and what to say to a router that lacks what was before.
type Digest struct {
	Name    string
	Message []byte
	Since   func(digest.Version) []byte
}

// Next calls send for each digest that has changed since the last call, or for all. Call it for all now and then, since
// a router that has lost the last change does not know it otherwise.
func (w *Worker) Next(all bool, send func(Digest)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.tiers {
		filter := t.set.Filter()
		if all || filter.Changed() > 0 || filter.Current().Version() != t.sent {
			send(Digest{t.name, t.feed.Next(), t.feed.Since})
			t.sent = filter.Current().Version()
		}
	}
}

// Give gives handle the message, and what it lacks then.
func (d Digest) Give(handle func(name string, message []byte) (since digest.Version, lacks bool, err error)) error {
	since, lacks, err := handle(d.Name, d.Message)
	if lacks {
		if _, lacks, err = handle(d.Name, d.Since(since)); lacks && err == nil {
			err = fmt.Errorf("kvblocks: %q does not follow from what was sent", d.Name)
		}
	}
	return err
}
