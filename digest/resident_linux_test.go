package digest

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestMappedCountersNeedNotBeResident: once the system has written mapped counters
// out, which is asked for here and which memory pressure does otherwise, they take
// no memory, though the file is as large as before; and they still count. While
// they are in use they are as resident as any others, only in pages that belong to
// the file: the system can drop them without swap space.
func TestMappedCountersNeedNotBeResident(t *testing.T) {
	if _, err := os.Stat("/proc/self/smaps"); err != nil {
		t.Skip("this system does not say what of a mapping is resident: ", err)
	}
	for _, g := range []Geometry{{Bits: 1 << 24, Hashes: 3}, {Bits: 1 << 30, Hashes: 1}} {
		path := filepath.Join(t.TempDir(), "counters")
		c := counting(t, g)
		if err := c.MapTo(path); err != nil {
			t.Fatal(err)
		}
		keys := randomKeys(random(1), 200_000)
		c.AddAll(keys)
		inUse := smaps(t, path)
		a := c.counters.Load().arena
		if err := a.file.Sync(); err != nil {
			t.Fatal(err)
		}
		for _, b := range a.mapped {
			if err := syscall.Madvise(b, syscall.MADV_DONTNEED); err != nil {
				t.Fatal(err)
			}
		}
		idle := smaps(t, path)
		t.Logf("%v: in use %v KiB, given back %v KiB, of which private %d", g, inUse, idle, idle["Private_Dirty"])
		if inUse["Rss"] < inUse["Size"]/2 || inUse["Size"] < 1024 {
			t.Errorf("%v: in use, %v: the counters are not in the mapping", g, inUse)
		}
		if idle["Rss"] != 0 || idle["Size"] != inUse["Size"] || inUse["Anonymous"] != 0 {
			t.Errorf("%v: in use %v, given back %v, want nothing resident, and never anonymous memory", g, inUse, idle)
		}
		for _, k := range keys[:1000] {
			if !c.MayContain(k) || !c.Remove(k) {
				t.Fatalf("%v: a key was lost with the pages", g)
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// smaps adds up, in KiB, what the system says of the mappings of a file.
func smaps(t *testing.T, path string) map[string]int {
	t.Helper()
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sums := map[string]int{}
	ours := false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		if strings.Contains(name, "-") { // the head of a mapping: addresses, and at last the file
			ours = strings.HasSuffix(lines.Text(), " "+path)
			continue
		}
		n := 0
		if _, err := fmt.Sscanf(strings.TrimSpace(value), "%d kB", &n); ours && err == nil {
			switch name {
			case "Size", "Rss", "Anonymous", "Private_Dirty", "Shared_Dirty":
				sums[name] += n
			}
		}
	}
	return sums
}
