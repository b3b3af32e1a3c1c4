package httpcache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/invalidation"
)

// TestRemove: after a removal no member has the value, no sibling brings it back, and a load that
// was in progress is not stored.
func TestRemove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMembers(t, 4)
		defer w.close()
		for version := range 20 {
			w.takes = 0
			for i := range 4 {
				if got := w.get(i, "x"); got != fmt.Sprint("v", version) {
					t.Fatalf("c%d has %s of version %d", i, got, version)
				}
			}
			time.Sleep(time.Duration(version%3) * time.Second) // the digests tell of it, or do not yet
			w.write()
			begun := time.Now()
			if err := w.all[version%4].Remove(t.Context(), "x"); err != nil || time.Since(begun) > time.Second {
				t.Errorf("Remove = %v, after %v", err, time.Since(begun))
			}
			for i, c := range w.all {
				if c.has(valueID("x")) != "" {
					t.Errorf("c%d still has it", i)
				}
			}
		}
		// A load that began before the removal returns the old value, only to callers from before.
		w.takes = time.Second
		var asking sync.WaitGroup
		asking.Go(func() { w.get(1, "y") })
		time.Sleep(time.Second / 2)
		w.write()
		if err := w.all[0].Remove(t.Context(), "y"); err != nil {
			t.Error(err)
		}
		if got := w.get(1, "y"); got != "v21" {
			t.Errorf("who asks afterwards gets %s", got)
		}
		asking.Wait()
		time.Sleep(5 * time.Second)
		for i := range w.all {
			if got := w.get(i, "y"); got != "v21" {
				t.Errorf("in the end c%d has %s", i, got)
			}
		}
		if s := w.all[1].Stats(); s.Invalidations != 21 || s.Loads == 0 || s.Hits == 0 || s.Gets < s.Hits+s.Loads {
			t.Errorf("Stats = %+v", s)
		}
	})
}

// TestRemoveAndPartition: the error names a member that is cut off. When it is back, no sibling gets
// the old value from it.
func TestRemoveAndPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMembers(t, 3)
		defer w.close()
		for i := range 3 {
			w.get(i, "x")
		}
		time.Sleep(3 * time.Second)
		w.net.Partition([]string{"10.0.0.1", "10.0.0.2"}, []string{"10.0.0.3"})
		w.write()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var late *gossip.UnreachedError
		if err := w.all[0].Remove(ctx, "x"); !errors.As(err, &late) || fmt.Sprint(late.Members) != "[c2]" {
			t.Errorf("Remove = %v", err)
		}
		w.net.Heal()
		for range 100 {
			w.all[1].store().Delete(valueID("x"))
			if got := w.get(1, "x"); got != "v1" {
				t.Fatalf("got %s back", got)
			}
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(20 * time.Second)
		if got := w.get(2, "x"); got != "v1" {
			t.Errorf("the one that was away has %s", got)
		}
	})
}

// TestSet: all members find a value that was set, without a load, until it expires or is invalidated by a prefix.
func TestSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMembers(t, 3)
		defer w.close()
		for i := range 3 {
			w.get(i, "x")
		}
		if err := w.all[2].Set(t.Context(), "x", []byte("set"), time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if got := w.get(2, "x"); got != "set" {
			t.Errorf("at once: %s", got)
		}
		time.Sleep(3 * time.Second)
		for i := range 3 {
			if got := w.get(i, "x"); got != "set" {
				t.Errorf("c%d has %s", i, got)
			}
		}
		time.Sleep(time.Minute)
		if got := w.get(0, "x"); got != "v0" {
			t.Errorf("after it has expired: %s", got)
		}
		w.get(1, "user 1")
		w.get(1, "user 2")
		if err := w.all[1].Invalidate(t.Context(), below(ValueURL("user "))); err != nil || w.all[1].objects() != 1 {
			t.Errorf("%d values, %v", w.all[1].objects(), err)
		}
		if err := w.all[1].Invalidate(t.Context(), below(ValueURL(""))); err != nil {
			t.Error(err)
		}
		for i, c := range w.all {
			if n := c.objects(); n != 0 {
				t.Errorf("c%d holds %d", i, n)
			}
		}
	})
}

// below is a target of all values whose names begin with one.
func below(url string) invalidation.Target {
	return invalidation.Target{Kind: invalidation.Prefix, Name: TargetOf(url).Name}
}
