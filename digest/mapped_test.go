package digest

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestMapped: mapped counters behave as others do, through growth, saving,
// rebuilding and closing, and leave no file behind.
func TestMapped(t *testing.T) {
	if !canMap {
		t.Skip("this system cannot map files")
	}
	for _, g := range geometries {
		t.Run(g.String(), func(t *testing.T) {
			r := random(g.Bits)
			keys := randomKeys(r, 4_000)
			path := filepath.Join(t.TempDir(), "counters")
			c := counting(t, g, keys[:100]...)
			if err := c.MapTo(path); err != nil {
				t.Fatal(err)
			}
			if err := c.MapTo(path + "2"); err == nil {
				t.Error("mapped twice")
			}
			o := &oracle{g, map[uint64]int{}}
			for _, k := range keys[:100] {
				o.add(k)
			}
			for i, k := range keys[100:] {
				c.Add(k)
				o.add(k)
				if i%3 == 0 && c.Remove(keys[i]) != o.remove(keys[i]) {
					t.Fatal("Remove differs from the oracle")
				}
			}
			checkFrozen(t, c, o)
			if c.counters.Load().arena.bytes() == 0 {
				t.Error("nothing is in the file")
			}
			back, err := DecodeCountingFilter(c.AppendTo(nil), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			equalFilters(t, back.Current(), c.Current())
			last := c.Current()
			if err := c.Close(); err != nil {
				t.Errorf("Close = %v", err)
			}
			if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("after Close, the file: %v", err)
			}
			if c.MayContain(keys[0]) || c.Len() != 0 || c.Current() != last {
				t.Error("Close left keys behind, or took the frozen filter away")
			}
			if err := back.MapTo(path); err != nil {
				t.Fatal(err)
			}
			if err := back.Rebuild(geometries[5], slices.Values(keys)); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) || back.Len() != len(keys) {
				t.Errorf("after Rebuild, the file: %v; Len = %d", err, back.Len())
			}
		})
	}
}

func TestMapToNowhere(t *testing.T) {
	c := counting(t, geometries[4], 1, 2, 3)
	if err := c.MapTo(filepath.Join(t.TempDir(), "no", "such", "directory")); err == nil {
		t.Error("MapTo a directory that is not there succeeded")
	}
	if c.Len() != 3 || !c.Remove(1) {
		t.Error("the filter suffered")
	}
}

// TestArenaFull: a file that cannot grow costs memory, not counts.
func TestArenaFull(t *testing.T) {
	if !canMap {
		t.Skip("this system cannot map files")
	}
	path := filepath.Join(t.TempDir(), "counters")
	c := counting(t, Geometry{Bits: 1 << 30, Hashes: 1})
	if err := c.MapTo(path); err != nil {
		t.Fatal(err)
	}
	a := c.counters.Load().arena
	whole := a.file
	a.file, _ = os.Open(path) // not for writing
	keys := randomKeys(random(1), 1_000)
	for _, k := range keys {
		c.Add(k)
	}
	if !c.Verify(slices.Values(keys)) || !slices.ContainsFunc(keys, c.MayContain) || a.overflow == nil {
		t.Errorf("keys were lost, or the file grew: %v", a.overflow)
	}
	if err := c.Close(); err == nil {
		t.Error("Close says nothing of the full disk")
	}
	whole.Close()
}
