package gossip

import (
	"bufio"
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// testdata/frozen has state files that earlier programs wrote, named by revision. They are never
// rewritten: a peer that is upgraded must be able to use its replicas.

var freeze = flag.String("freeze", "", "write testdata/frozen/`NAME`.state, which must not exist")

const (
	frozenDir  = "testdata/frozen"
	frozenKeys = 300 // at p1; p2, whose state it is, and p3 have none
)

// TestFreeze writes the state of a node of the present program, once.
func TestFreeze(t *testing.T) {
	if *freeze == "" {
		t.Skip("only with -freeze NAME")
	}
	file := filepath.Join(frozenDir, *freeze+".state")
	if _, err := os.Stat(file); err == nil {
		t.Fatal("frozen files are not rewritten")
	}
	if err := os.MkdirAll(frozenDir, 0o755); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.startMany(3)
		for i := range frozenKeys {
			c.nodes["p1"].cfg.Holdings.Keys().Add(key("p1", i))
		}
		time.Sleep(5 * time.Second)
		within(t, settling, c.inStep)
		n := c.nodes["p2"]
		n.cfg.StateFile = file
		if err := n.save(); err != nil {
			t.Fatal(err)
		}
		n.cfg.StateFile = ""
	})
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
}

// The present code reads the state files of all earlier programs, and writes such files.
func TestFrozen(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(frozenDir, "*.state"))
	if err != nil || len(files) == 0 {
		t.Fatalf("nothing is frozen: %v", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			defer c.close()
			n, err := New(c.config("p9", "10.0.0.9"))
			if err != nil {
				t.Fatal(err)
			}
			defer n.Close()
			n.mu.Lock()
			defer n.mu.Unlock()
			if loaded, err := n.readState(bufio.NewReader(bytes.NewReader(b))); loaded != 3 || err != nil {
				t.Fatalf("%s gives %d replicas, %v, want 3", file, loaded, err)
			}
			saved := n.engine.Save() // its own digest: replicas that nobody has confirmed yet are not saved again
			var out bytes.Buffer
			if err := writeState(&out, saved); err != nil {
				t.Fatal(err)
			}
			if frame := saved["p9"].AppendTo(nil); len(saved) != 1 || out.String() != "summarycache replicas 1\n\x02p9"+string(frame) {
				t.Errorf("a state of %d digests is written as %q", len(saved), out.String())
			}
			for name, keys := range map[string]int{"p1": frozenKeys, "p2": 0, "p3": 0} {
				r, ok := n.engine.Replica(name)
				if !ok || r.Filter == nil || r.Filter.Keys() != uint64(keys) {
					t.Fatalf("%s: %s: %+v, want %d keys", file, name, r, keys)
				}
				for i := range keys {
					if !r.Filter.MayContain(key(name, i)) {
						t.Fatalf("%s: %s lacks key %d", file, name, i)
					}
				}
			}
		})
	}
}
