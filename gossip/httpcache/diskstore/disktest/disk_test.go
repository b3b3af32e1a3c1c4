package disktest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
)

const dir = "/store"

func open(t *testing.T, d *Disk) diskstore.Store {
	t.Helper()
	s, err := diskstore.Open(diskstore.Options{Dir: dir, MaxBytes: 8 << 20, FS: d, MemoryBytes: 256 << 10})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pattern makes the body of version v of an object.
func pattern(key string, v int) []byte {
	b := make([]byte, []int{0, 700, 5_000, 70_000, 200_000}[v%5])
	for i := range b {
		b[i] = byte(uint32(i+v*7919)*2654435761>>24) ^ key[len(key)-1]
	}
	return b
}

// put stores a version and reports whether it is stored. A follower gets it in any case.
func put(t *testing.T, s diskstore.Store, key string, v int) bool {
	t.Helper()
	b := pattern(key, v)
	w, err := s.Create(key, int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	f, ok := w.Follow(t.Context())
	if !ok {
		t.Fatal("nobody can follow")
	}
	defer f.Close()
	if err := w.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	_, err = w.Commit(bodies.Meta{Data: fmt.Append(nil, v), ListUntil: time.Now().Add(time.Hour)})
	got, rerr := io.ReadAll(f)
	if !bytes.Equal(got, b[:len(got)]) || rerr == nil && len(got) != len(b) || rerr != nil && !errors.Is(rerr, bodies.ErrCorrupt) {
		t.Errorf("%s: followed %d of %d bytes, %v", key, len(got), len(b), rerr)
	}
	return err == nil
}

// get reads an object and returns its version, -1 for none. A wrong byte fails the test.
func get(t *testing.T, s diskstore.Store, key string) int {
	t.Helper()
	o, ok := s.Get(key)
	if !ok {
		return -1
	}
	v, err := s.Open(o, nil)
	if err != nil {
		return -1
	}
	defer v.Close()
	version := -1
	fmt.Sscan(string(v.(bodies.Described).Value().([]byte)), &version)
	var got bytes.Buffer
	src, err := v.Source(0, o.Size())
	if err == nil {
		_, err = io.Copy(&got, src)
	}
	want := pattern(key, version)
	if !bytes.HasPrefix(want, got.Bytes()) || err == nil && got.Len() != len(want) {
		t.Fatalf("%s: version %d: %d bytes that are not its, %v", key, version, got.Len(), err)
	}
	if err != nil {
		if !errors.Is(err, bodies.ErrCorrupt) {
			t.Errorf("%s: %v", key, err)
		}
		return -1
	}
	return version
}

// TestFaults: on a disk that fails now and then in every way, no wrong byte is
// served, every follower gets its body, and the store works when the disk does.
func TestFaults(t *testing.T) {
	failed := map[Op]int{}
	seeds := uint64(40)
	if testing.Short() { // with the race detector
		seeds = 10
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) { testFaults(t, seed, failed) })
	}
	for _, op := range []Op{Open, Create, Remove, Read, Write} {
		if failed[op] == 0 {
			t.Errorf("no %s failed", op)
		}
	}
}

func testFaults(t *testing.T, seed uint64, failed map[Op]int) {
	rng := rand.New(rand.NewPCG(seed, 1))
	d := New()
	s := open(t, d)
	var mu sync.Mutex // files are removed in the background
	faults := rand.New(rand.NewPCG(seed, 3))
	d.Inject(func(op Op, name string, b []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		rng := faults
		if rng.IntN(20) > 0 {
			return 0, nil
		}
		failed[op]++
		if op == Read && len(b) > 0 && rng.IntN(2) == 0 {
			b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
			return 0, nil
		}
		n := 0
		if len(b) > 0 {
			n = rng.IntN(len(b))
		}
		return n, []error{syscall.EIO, syscall.ENOSPC, syscall.EMFILE}[rng.IntN(3)]
	})
	for i := range 400 {
		key := fmt.Sprint("key ", rng.IntN(30))
		switch o, ok := s.Peek(key); {
		case rng.IntN(3) == 0:
			put(t, s, key, i)
		case ok && rng.IntN(10) == 0:
			v := get(t, s, key)
			if v >= 0 {
				s.Update(o, bodies.Meta{Data: fmt.Append(nil, v)})
			}
		case rng.IntN(20) == 0:
			s.Delete(key)
		default:
			get(t, s, key)
		}
	}
	d.Inject(nil)
	time.Sleep(time.Hour) // for some time after a full disk, a store uses less room
	for i := range 30 {
		key := fmt.Sprint("key ", i)
		if !put(t, s, key, i) || get(t, s, key) != i {
			t.Errorf("seed %d: %s can't be stored on a disk that works: %+v", seed, key, s.Stats())
		}
	}
	s.Close()
	s = open(t, d.Killed())
	for i := range 30 {
		if got := get(t, s, fmt.Sprint("key ", i)); got != i {
			t.Errorf("seed %d: key %d has version %d after a start: %+v", seed, i, got, s.Stats())
		}
	}
	s.Close()
}

// TestPowerCut: whatever a power cut loses, the store opens and serves no wrong byte.
// Objects that were written back before, and neither changed nor moved since, are there. Each
// object has one of the versions that it had since.
func TestPowerCut(t *testing.T) {
	if testing.Short() {
		t.Skip("writes and reads in one goroutine")
	}
	turnedOver := 0
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 2))
		d := New()
		s := open(t, d)
		versions := map[string][]int{} // since the last Sync; -1 = none
		synced := map[string]int{}
		var segments []string // then
		steps := 50 + rng.IntN(100)
		for i := range steps {
			key := fmt.Sprint("key ", rng.IntN(20))
			if rng.IntN(4) == 0 {
				s.Delete(key)
				versions[key] = append(versions[key], -1)
			} else if put(t, s, key, i) {
				versions[key] = append(versions[key], i)
			}
			if rng.IntN(30) == 0 {
				s.Close() // waits for removals under way
				d.Sync()
				s = open(t, d)
				versions = map[string][]int{}
				segments = d.Names(dir + "/objects/segments")
				for i := range 20 {
					key := fmt.Sprint("key ", i)
					synced[key] = get(t, s, key)
				}
			}
		}
		s.Close()
		turned := s.Stats().GarbageBytes > 128<<10 || // more than a segment: Close may have interrupted a move
			slices.ContainsFunc(segments, func(name string) bool { return !slices.Contains(d.Names(dir+"/objects/segments"), name) })
		if turned {
			turnedOver++
		}
		after := open(t, d.PowerCut(rng))
		for i := range 20 {
			key := fmt.Sprint("key ", i)
			before, ok := synced[key]
			if !ok {
				before = -1
			}
			got := get(t, after, key)
			right := got == -1 && (turned || len(versions[key]) > 0) || got == before
			for _, v := range versions[key] {
				right = right || got == v
			}
			if !right {
				t.Errorf("seed %d: %s has version %d; %d before the last sync, then %v", seed, key, got, before, versions[key])
			}
		}
		after.Close()
	}
	t.Logf("segments were turned over in %d runs", turnedOver)
	if turnedOver > 20 {
		t.Errorf("in %d runs of 100 segments were turned over: the others say too little", turnedOver)
	}
}
