package node

import (
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// A peer that is restarted with its store continues with its digest and with those of
// the others: no peer fetches a whole digest.
func TestRestartCostsNoWholeDigest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sizes := make(map[string]int64)
		for i := range 30 {
			sizes[fmt.Sprintf("/%d", i)] = 1000
		}
		v := newVirtual(t, 2, sizes)
		defer v.stop()
		dir := t.TempDir()
		v.digests = filepath.Join(dir, "digests")
		v.start(2, filepath.Join(dir, "store"))
		for i := range 30 {
			if err := v.get(i%3, fmt.Sprintf("/%d", i)); err != nil {
				t.Fatal(err)
			}
			pause(200 * time.Millisecond)
		}
		pause(5 * time.Second)
		snapshots := func(i int) int64 { return v.nodes[i].Status().Exchange.SnapshotsReceived }
		before, old := []int64{snapshots(0), snapshots(1)}, v.nodes[2].Status().Digest
		if err := v.nodes[2].Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		v.nodes, v.hosts = v.nodes[:2], v.hosts[:2]
		pause(5 * time.Second)
		v.start(2, filepath.Join(dir, "store"))
		pause(5 * time.Second)
		now := v.nodes[2].Status().Digest
		if now.Keys != old.Keys || now.Epoch != old.Epoch || now.Sequence != old.Sequence {
			t.Errorf("it goes on with %d keys, version %d.%d; want %d, %d.%d", now.Keys, now.Epoch, now.Sequence, old.Keys, old.Epoch, old.Sequence)
		}
		if got := []int64{snapshots(0) - before[0], snapshots(1) - before[1], snapshots(2)}; got[0] != 0 || got[1] != 0 || got[2] != 0 {
			t.Errorf("snapshots fetched: %v, want none", got)
		}
		for i := range 2 {
			m := v.nodes[i].Status().Members
			for _, m := range m {
				if m.Name == "p2" && (m.Keys != uint64(old.Keys) || !m.Current) {
					t.Errorf("p%d has %d keys of p2, current %v; want %d", i, m.Keys, m.Current, old.Keys)
				}
			}
		}
	})
}
