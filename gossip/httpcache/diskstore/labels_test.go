package diskstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/httpcache/budget"
)

// byWords has the words of a description as labels.
func byWords(data []byte) []string { return strings.Fields(string(data)) }

func putLabelled(s *store, key string, labels ...string) (*object, error) {
	w, err := s.Create(key, 1)
	if err != nil {
		return nil, err
	}
	if err := w.Write(context.Background(), []byte("x")); err != nil {
		return nil, err
	}
	o, err := w.Commit(bodies.Meta{Data: []byte(strings.Join(labels, " "))})
	committed, _ := o.(*object)
	return committed, err
}

// TestLabelsAgainstMap compares labels with a map of the objects in the store, over several lives of
// all of them.
func TestLabelsAgainstMap(t *testing.T) {
	account := budget.New(1<<30).Open("tags", 0, 0)
	s := open(t, Options{MaxBytes: 64 << 20, Hooks: bodies.Hooks{Labels: byWords}, LabelMemory: account})
	r := rand.New(rand.NewPCG(1, 2))
	want := make(map[string][]string) // labels by key
	check := func(label string) {
		t.Helper()
		var got, wanted []string
		for o := range s.Labelled(label) {
			got = append(got, o.Key())
		}
		for key, labels := range want {
			if slices.Contains(labels, label) {
				wanted = append(wanted, key)
			}
		}
		slices.Sort(got)
		slices.Sort(wanted)
		if !slices.Equal(got, wanted) {
			t.Fatalf("Labelled(%q) = %q, want %q", label, got, wanted)
		}
	}
	for step := range 6000 {
		key := fmt.Sprint(r.IntN(300))
		switch r.IntN(4) {
		case 0:
			s.Delete(key)
			delete(want, key)
		default:
			var labels []string
			for range r.IntN(12) {
				labels = append(labels, fmt.Sprint(r.IntN(200)))
			}
			if _, err := putLabelled(s, key, labels...); err != nil {
				t.Fatal(err)
			}
			want[key] = labels
		}
		if step%10 == 0 {
			check(fmt.Sprint(r.IntN(200)))
		}
	}
	for label := range 200 {
		check(fmt.Sprint(label))
	}
	for key := range want {
		s.Delete(key)
	}
	want = nil
	check("7")
	s.sweep()
	if held := account.Held(); held != 0 {
		t.Errorf("an empty store holds %d bytes for labels", held)
	}
}

// TestLabelsHaveABudget checks that objects are not stored while there is no memory for their labels,
// at a start either, and that those which leave make room.
func TestLabelsHaveABudget(t *testing.T) {
	dir := t.TempDir()
	account := budget.New(1<<30).Open("tags", 0, 100*10*perLabel)
	m := newMirror()
	hooks := m.hooks()
	hooks.Labels = byWords
	s := open(t, Options{Dir: dir, MaxBytes: 64 << 20, LabelMemory: account, Hooks: hooks})
	labels := func(i int) (list []string) {
		for k := range 10 {
			list = append(list, fmt.Sprintf("%d-%d", i, k))
		}
		return list
	}
	for i := range 110 {
		_, err := putLabelled(s, fmt.Sprint(i), labels(i)...)
		if i < 100 && err != nil || i >= 100 && !errors.Is(err, bodies.ErrNoMemory) {
			t.Fatalf("object %d: %v", i, err)
		}
		if _, ok := s.Get(fmt.Sprint(i)); ok != (err == nil) {
			t.Errorf("object %d is there: %v, after %v", i, ok, err)
		}
	}
	o, _ := s.Get("5")
	if _, err := s.Update(o, bodies.Meta{Data: []byte(strings.Join(append(labels(5), "more"), " "))}); !errors.Is(err, bodies.ErrNoMemory) {
		t.Errorf("an update with more labels: %v", err)
	}
	s.Delete("7")
	if _, err := putLabelled(s, "200", labels(200)...); err != nil {
		t.Errorf("after others left: %v", err)
	}
	m.check(t, s)
	s.Close()
	half := budget.New(1<<30).Open("tags", 0, 50*10*perLabel)
	s = open(t, Options{Dir: dir, MaxBytes: 64 << 20, Hooks: bodies.Hooks{Labels: byWords}, LabelMemory: half})
	if n := s.Stats().Objects; n != 50 {
		t.Errorf("%d objects after a start with memory for 50", n)
	}
}

// TestLabelsTakeLittleMemory checks that 2,000 objects with 1,000 labels each take at most twice as much
// memory for them as they take on disk: it was 13 times as much.
func TestLabelsTakeLittleMemory(t *testing.T) {
	account := budget.New(4<<30).Open("tags", 0, 0)
	s := open(t, Options{MaxBytes: 1 << 30, Hooks: bodies.Hooks{Labels: byWords}, LabelMemory: account})
	before := heapBytes()
	for i := range 2000 {
		labels := make([]string, 1000)
		for k := range labels {
			labels[k] = fmt.Sprintf("t%d-%d", i, k)
		}
		if _, err := putLabelled(s, fmt.Sprint(i), labels...); err != nil {
			t.Fatal(err)
		}
	}
	s.index.CleanUp()
	heap, disk := heapBytes()-before, onDisk(t, s.opt.Dir)
	runtime.KeepAlive(s)
	t.Logf("heap %.1f MB, counted %.1f MB, disk %.1f MB", float64(heap)/1e6, float64(account.Held())/1e6, float64(disk)/1e6)
	if heap > 2*disk || heap > account.Held()*5/4 {
		t.Errorf("%d bytes of heap, %d counted, for %d on disk", heap, account.Held(), disk)
	}
}
