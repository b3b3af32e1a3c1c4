package kvblocks

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/summarycache/summarycache/digest"
)

var (
	seed       = digest.SeedFrom([]byte("a model, 16 tokens, sha256"))
	_    Index = Local{}
)

func local() Index { return Local{&Worker{Seed: seed}, NewRouter(seed)} }

func gpu(pod string) PodEntry { return PodEntry{PodIdentifier: pod, DeviceTier: "gpu"} }
func cpu(pod string) PodEntry { return PodEntry{PodIdentifier: pod, DeviceTier: "cpu"} }
func group(pod string, i int) PodEntry {
	return PodEntry{PodIdentifier: pod, DeviceTier: "gpu", HasGroup: true, GroupIdx: i}
}
func speculative(pod string) PodEntry   { return PodEntry{PodIdentifier: pod, Speculative: true} }
func blocks(b ...BlockHash) []BlockHash { return b }
func entries(e ...PodEntry) []PodEntry  { return e }
func only(p ...string) map[string]struct{} {
	set := map[string]struct{}{}
	for _, pod := range p {
		set[pod] = struct{}{}
	}
	return set
}

// A call is one of an Index, and a look-up what must be found then.
type (
	add struct {
		engine, keys []BlockHash
		entries      []PodEntry
	}
	evict struct {
		key     BlockHash
		of      KeyType
		entries []PodEntry
	}
	clearPod struct{ pod string }
	lookup   struct {
		key  BlockHash
		pods map[string]struct{}
		want []PodEntry
	}
	request struct{ engine, want BlockHash } // want 0 = an error
)

// TestBehaviour: what llm-d's tests of its indexes ask for.
func TestBehaviour(t *testing.T) {
	for name, calls := range map[string][]any{
		"what is added is found": {add{blocks(55), blocks(10), entries(gpu("1"), gpu("2"))}, lookup{10, nil, entries(gpu("1"), gpu("2"))}, lookup{10, only(), entries(gpu("1"), gpu("2"))}, lookup{55, nil, nil}},
		"a pod is found once a tier": {add{blocks(55), blocks(10), entries(gpu("1"), gpu("2"))}, add{blocks(55), blocks(10), entries(gpu("1"), cpu("2"), gpu("3"))},
			lookup{10, nil, entries(gpu("1"), gpu("2"), cpu("2"), gpu("3"))}},
		"only some pods": {add{blocks(55), blocks(10), entries(gpu("1"), gpu("2"), gpu("3"))}, lookup{10, only("1"), entries(gpu("1"))},
			lookup{10, only("1", "3"), entries(gpu("1"), gpu("3"))}, lookup{10, only("9"), nil}},
		"evicted from one tier":      {add{blocks(55), blocks(10), entries(gpu("1"), gpu("2"), gpu("3"))}, evict{55, EngineKey, entries(gpu("1"), cpu("3"))}, lookup{10, nil, entries(gpu("2"), gpu("3"))}},
		"evicted, of several":        {add{blocks(1, 2, 3), blocks(11, 12, 13), entries(gpu("1"))}, evict{2, EngineKey, entries(gpu("1"))}, lookup{11, nil, entries(gpu("1"))}, lookup{12, nil, nil}, lookup{13, nil, entries(gpu("1"))}},
		"unknown to the engine":      {evict{2, EngineKey, entries(gpu("1"))}, request{2, 0}},
		"without the engine's names": {add{nil, blocks(10), entries(speculative("1"))}, lookup{10, nil, entries(speculative("1"))}, request{10, 0}},
		"a name for each":            {add{blocks(1, 2, 3, 4), blocks(11, 12, 13, 14), entries(gpu("1"))}, request{1, 11}, request{2, 12}, request{3, 13}, request{4, 14}, lookup{14, nil, entries(gpu("1"))}},
		"several names for one": {add{blocks(1, 2, 3, 4), blocks(11), entries(gpu("1"))}, request{1, 11}, request{4, 11}, lookup{11, nil, entries(gpu("1"))},
			evict{1, EngineKey, entries(gpu("1"))}, lookup{11, nil, nil}},
		"several names for several": {add{blocks(1, 2, 3, 4), blocks(11, 12), entries(gpu("1"))}, request{1, 11}, request{2, 11}, request{3, 12}, request{4, 12}},
		"a name for several": {add{blocks(1, 2), blocks(11, 12, 13, 14), entries(gpu("1"))}, request{1, 12}, request{2, 14}, lookup{11, nil, entries(gpu("1"))}, lookup{14, nil, entries(gpu("1"))},
			evict{1, EngineKey, entries(gpu("1"))}, lookup{11, nil, nil}, lookup{12, nil, nil}, lookup{13, nil, entries(gpu("1"))}},
		"a name stands as long as a tier holds the block": {add{blocks(1), blocks(11), entries(gpu("1"))}, add{nil, blocks(11), entries(cpu("1"))}, lookup{11, nil, entries(gpu("1"), cpu("1"))},
			evict{1, EngineKey, entries(gpu("1"))}, lookup{11, nil, entries(cpu("1"))}, request{1, 11}, evict{1, EngineKey, entries(cpu("1"))}, lookup{11, nil, nil}, request{1, 0}},
		"groups": {add{blocks(1), blocks(11), entries(group("1", 0))}, add{blocks(1), blocks(11), entries(group("1", 1))}, lookup{11, nil, entries(group("1", 0), group("1", 1))},
			evict{1, EngineKey, entries(group("1", 1))}, lookup{11, nil, entries(group("1", 0))}, evict{1, EngineKey, entries(group("1", 0))}, lookup{11, nil, nil}},
		"what is expected and what is": {add{nil, blocks(11), entries(speculative("1"))}, add{blocks(1), blocks(11), entries(PodEntry{PodIdentifier: "1"})},
			lookup{11, nil, entries(speculative("1"), PodEntry{PodIdentifier: "1"})}, evict{11, RequestKey, entries(speculative("1"))}, lookup{11, nil, entries(PodEntry{PodIdentifier: "1"})},
			evict{11, RequestKey, entries(PodEntry{PodIdentifier: "1"})}, lookup{11, nil, nil}},
		"cleared": {add{nil, blocks(11), entries(gpu("1"), cpu("1"), group("1", 1), gpu("2"))}, clearPod{"1"}, lookup{11, nil, entries(gpu("2"))},
			add{nil, blocks(11), entries(gpu("1"))}, lookup{11, nil, entries(gpu("1"), gpu("2"))}},
	} {
		t.Run(name, func(t *testing.T) {
			x := local()
			for i, c := range calls {
				var err error
				switch c := c.(type) {
				case add:
					err = x.Add(t.Context(), c.engine, c.keys, c.entries)
				case evict:
					err = x.Evict(t.Context(), c.key, c.of, c.entries)
				case clearPod:
					err = x.Clear(t.Context(), c.pod)
				case request:
					got, err := x.GetRequestKey(t.Context(), c.engine)
					if got != c.want || (err == nil) != (c.want != 0) {
						t.Errorf("call %d: GetRequestKey(%d) = %d, %v, want %d", i, c.engine, got, err, c.want)
					}
				case lookup:
					found, err := x.Lookup(t.Context(), blocks(c.key), c.pods)
					want := map[BlockHash][]PodEntry{}
					if c.want != nil {
						want[c.key] = sorted(c.want)
						sorted(found[c.key])
					}
					if err != nil || !reflect.DeepEqual(found, want) {
						t.Errorf("call %d: Lookup(%d) = %v, %v, want %v", i, c.key, found, err, want)
					}
				}
				if err != nil {
					t.Errorf("call %d: %v", i, err)
				}
			}
		})
	}
}

func sorted(e []PodEntry) []PodEntry {
	slices.SortFunc(e, func(a, b PodEntry) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return e
}

// TestMisuse: calls without keys or entries are errors.
func TestMisuse(t *testing.T) {
	x := local()
	if _, err := x.Lookup(t.Context(), nil, nil); err == nil {
		t.Error("a look-up of nothing")
	}
	for _, c := range []add{{nil, nil, entries(gpu("1"))}, {nil, blocks(1), nil}} {
		if err := x.Add(t.Context(), c.engine, c.keys, c.entries); err == nil {
			t.Errorf("Add%v", c)
		}
	}
	if x.Evict(t.Context(), 1, EngineKey, nil) == nil || x.Evict(t.Context(), 1, 7, entries(gpu("1"))) == nil {
		t.Error("Evict of nothing, or of a key of no type")
	}
}

// TestConcurrent: thirty goroutines add, look up and evict the same blocks; then exactly those that stay are found.
func TestConcurrent(t *testing.T) {
	x := local()
	var all sync.WaitGroup
	for g := range 30 {
		all.Go(func() {
			stays, goes := gpu(fmt.Sprint("stays ", g)), gpu(fmt.Sprint("goes ", g))
			for i := range BlockHash(10) {
				err := x.Add(t.Context(), blocks(100+i), blocks(200+i), entries(stays, goes))
				if _, wrong := x.Lookup(t.Context(), blocks(200, 201, 202), nil); err != nil || wrong != nil {
					t.Error(err, wrong)
				}
				if err := x.Evict(t.Context(), 200+i, RequestKey, entries(goes)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for i := range BlockHash(10) {
		found, err := x.Lookup(t.Context(), blocks(200+i), nil)
		for _, e := range found[200+i] {
			if err != nil || !strings.HasPrefix(e.PodIdentifier, "stays") {
				t.Errorf("Lookup(%d) has %v, %v", 200+i, e, err)
			}
		}
		if len(found[200+i]) != 30 {
			t.Errorf("Lookup(%d) finds %d entries, want 30", 200+i, len(found[200+i]))
		}
	}
}

// TestTurnovers: a tier that holds 500 blocks at a time, of 50,000, ends with few names of the engine and
// no block that has gone, also if what evicts does not know the names.
func TestTurnovers(t *testing.T) {
	w, r := &Worker{Seed: seed, Blocks: 100}, NewRouter(seed)
	x := Local{w, r}
	const held, turns = 500, 100
	for i := range BlockHash(held * turns) {
		if err := x.Add(t.Context(), blocks(1<<40+i), blocks(i), entries(gpu("1"))); err != nil {
			t.Fatal(err)
		}
		if i >= held {
			x.Evict(t.Context(), i-held, RequestKey, entries(gpu("1")))
		}
	}
	if n := len(w.engine); n > 5*held {
		t.Errorf("%d names of the engine for %d blocks", n, held)
	}
	gone := 0
	for i := range BlockHash(held * turns) {
		found, _ := x.Lookup(t.Context(), blocks(i), nil)
		switch have := len(found) > 0; {
		case !have && i >= held*(turns-1):
			t.Fatalf("block %d is not found", i)
		case have && i < held*(turns-1):
			gone++
		}
	}
	if gone > 2*held*turns/1000 {
		t.Errorf("%d of %d blocks that have gone are found", gone, held*(turns-1))
	}
}

// TestPrefixes: a prompt of which some blocks are in one tier and the next in another is held by one pod.
func TestPrefixes(t *testing.T) {
	w, r := &Worker{Seed: seed}, NewRouter(seed)
	prompt := make([]BlockHash, 30)
	for i := range prompt {
		prompt[i] = BlockHash(1000 + i)
	}
	w.Add(t.Context(), nil, prompt[:10], entries(cpu("1")))
	w.Add(t.Context(), nil, prompt[10:], entries(gpu("1")))
	w.Add(t.Context(), nil, prompt[:20], entries(gpu("2")))
	want := func(want string) {
		t.Helper()
		got := ""
		for _, p := range r.Prefixes(prompt) {
			got += fmt.Sprint(p.Peer, ":", p.Keys, " ")
		}
		if got != want {
			t.Errorf("Prefixes = %q, want %q", got, want)
		}
	}
	want("")
	w.Next(false, func(d Digest) {
		if err := d.Give(r.Handle); err != nil {
			t.Error(err)
		}
	})
	want("1:30 2:20 ")
	r.Forget("1")
	want("2:20 ")
}
