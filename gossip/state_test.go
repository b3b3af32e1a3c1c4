package gossip

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestWarmRestartFetchesOnlyWhatChanged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "replicas")
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.startMany(3)
		for i := range 2000 {
			c.nodes["p1"].cfg.Holdings.Keys().Add(key("p1", i))
			c.nodes["p2"].cfg.Holdings.Keys().Add(key("p2", i))
		}
		cfg := c.config("p4", "10.0.0.4")
		cfg.Join = []string{"10.0.0.1:7946"}
		cfg.StateFile = file
		c.start(cfg)
		within(t, settling, c.inStep)
		if err := c.nodes["p4"].Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		delete(c.nodes, "p4")
		c.nodes["p1"].cfg.Holdings.Keys().Add(key("p1", 2000))
		time.Sleep(10 * time.Second)

		cfg = c.config("p4", "10.0.0.4")
		cfg.StateFile = file
		n, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		c.nodes["p4"] = n
		if got := len(holders(n, key("p2", 7))); got != 0 {
			t.Errorf("a replica from the file is in use before its origin has confirmed it")
		}
		n.cfg.Join = []string{"10.0.0.1:7946"}
		if err := n.Join(t.Context()); err != nil {
			t.Fatal(err)
		}
		within(t, settling, c.inStep)
		if s := n.Stats().Exchange; s.SnapshotsReceived != 0 || s.DeltasReceived != 1 {
			t.Errorf("after the restart %d snapshots, %d deltas, want 0 and 1", s.SnapshotsReceived, s.DeltasReceived)
		}
		if !holders(n, key("p2", 7))["p2"] || !holders(n, key("p1", 2000))["p1"] {
			t.Error("the replicas are not in use")
		}
	})
}

func TestStateOfAFormerLifeIsNotUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "replicas")
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.startMany(1)
		c.nodes["p1"].cfg.Holdings.Keys().Add(key("p1", 1))
		cfg := c.config("p2", "10.0.0.2")
		cfg.Join, cfg.StateFile = []string{"10.0.0.1:7946"}, file
		c.start(cfg)
		within(t, settling, c.inStep)
		c.nodes["p2"].Close()
		c.kill("p1")
		c.startMany(1)
		cfg.Holdings = NewHoldings(newFilter(t, testSecret))
		n := c.start(cfg)
		within(t, settling, c.inStep)
		if holders(n, key("p1", 1))["p1"] {
			t.Error("a replica of a former life of p1 is in use")
		}
	})
}

func TestDamagedStateIsLeftOut(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "replicas")
	var sound []byte
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.startMany(4)
		for i := range 100 {
			c.nodes["p1"].cfg.Holdings.Keys().Add(key("p1", i))
		}
		within(t, settling, c.inStep)
		n := c.nodes["p2"]
		n.cfg.StateFile = file
		if err := n.save(); err != nil {
			t.Fatal(err)
		}
		var err error
		if sound, err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
		cfg := c.config("p5", "10.0.0.5")
		reader, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		load := func(b []byte) (int, error) {
			reader.mu.Lock()
			defer reader.mu.Unlock()
			reader.engine = newNode(reader.cfg, reader.advertise).engine
			return reader.readState(bufio.NewReader(bytes.NewReader(b)))
		}
		if got, err := load(sound); got != 4 || err != nil {
			t.Errorf("the sound file gives %d replicas, %v, want 4", got, err)
		}
		for cut := range len(sound) {
			if got, err := load(sound[:cut]); got > 4 || got == 4 && err != nil {
				t.Errorf("cut at %d it gives %d replicas, %v", cut, got, err)
			}
		}
		for bit := 0; bit < 8*len(sound); bit += 7 {
			b := bytes.Clone(sound)
			b[bit/8] ^= 1 << (bit % 8)
			load(b) // must neither panic nor accept what does not fit its name and state
			for _, p := range []string{"p1", "p2", "p3", "p4"} {
				reader.mu.Lock()
				r, ok := reader.engine.Replica(p)
				reader.mu.Unlock()
				if ok && r.Filter.Version() != c.nodes[p].cfg.Holdings.Keys().Filter().Current().Version() {
					t.Errorf("with bit %d flipped it gives %v of %s", bit, r.Filter.Version(), p)
				}
			}
		}
	})
}

func TestStateFileMistakes(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]string{
		filepath.Join(dir, "absent", "file"): "no such file",
		dir:                                  "not a regular file",
	} {
		n, err := New(Config{Name: "p", Bind: "127.0.0.1:0", StateFile: name, Logger: testLog()})
		if err == nil {
			n.Close()
		}
		if err == nil || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("New with the state file %s = %v, want %q", name, err, want)
		}
	}
}
