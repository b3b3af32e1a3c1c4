package diskstore

import (
	"fmt"
	"testing"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/httpcache/budget"
)

// view loads an object, as a hit does.
func look(t *testing.T, s *store, key string) {
	t.Helper()
	o, ok := s.Get(key)
	if !ok {
		return
	}
	v, err := s.Open(o, nil)
	if err != nil {
		t.Fatal(err)
	}
	v.Close()
}

// TestIndexAndHotObjectsShareMemory checks that the index and the hot objects stay within MemoryBytes
// together, and that a large index leaves the hot objects an eighth.
func TestIndexAndHotObjectsShareMemory(t *testing.T) {
	const memory = 1 << 20
	account := budget.New(1<<30).Open("objects", 0, 0)
	s := open(t, Options{MaxBytes: 64 << 20, MemoryBytes: memory, Memory: account})
	n := 0
	fill := func(to int) {
		for ; n < to; n++ {
			put(t, s, fmt.Sprint(n), body(1, 1000), bodies.Meta{})
			look(t, s, fmt.Sprint(n))
		}
		for range 2 { // so that a full set takes them
			for i := range n {
				look(t, s, fmt.Sprint(i))
			}
		}
		s.hot.cache.CleanUp()
	}
	for _, test := range []struct {
		objects   int
		hot, hotM int64 // least and most
	}{
		{100, 240_000, 270_000}, // all of them
		{1000, 600_000, memory - 1000*perObject},
		{3000, 200_000, memory - 3000*perObject},
		{6000, 90_000, memory / hotLeast},
	} {
		fill(test.objects)
		stats := s.Stats()
		if stats.MemoryBytes < test.hot || stats.MemoryBytes > test.hotM+s.hot.step() {
			t.Errorf("%d objects: hot ones take %d bytes, want %d to %d", n, stats.MemoryBytes, test.hot, test.hotM)
		}
		if stats.IndexBytes < int64(n*perObject) || stats.IndexBytes > int64(n*(perObject+8)) {
			t.Errorf("%d objects: the index takes %d bytes", n, stats.IndexBytes)
		}
		if held := account.Held(); held < stats.IndexBytes+stats.MemoryBytes || held > max(memory, stats.IndexBytes+memory/hotLeast)+s.hot.step() {
			t.Errorf("%d objects: the account holds %d bytes, for %d and %d", n, held, stats.IndexBytes, stats.MemoryBytes)
		}
	}
}

// TestHotObjectsYield checks that hot objects give memory back to another account that is short, and
// that they leave the store as it is.
func TestHotObjectsYield(t *testing.T) {
	b := budget.New(32 << 20)
	s := open(t, Options{MaxBytes: 64 << 20, MemoryBytes: 8 << 20, Memory: b.Open("objects", 0, 0)})
	other := b.Open("other", 0, 0)
	for i := range 2000 {
		put(t, s, fmt.Sprint(i), body(1, 2000), bodies.Meta{})
		look(t, s, fmt.Sprint(i))
	}
	before := s.Stats()
	if before.MemoryBytes < 6<<20 {
		t.Fatalf("hot objects take %d bytes", before.MemoryBytes)
	}
	for range 4 {
		if !other.Take(b.Total() / 5) {
			t.Fatalf("another account is refused: %+v", b.Usage())
		}
	}
	after := s.Stats()
	if after.MemoryBytes > before.MemoryBytes/2 || after.Objects != before.Objects || after.MemoryBytes == 0 {
		t.Errorf("hot objects take %d bytes, before %d; %d objects, before %d", after.MemoryBytes, before.MemoryBytes, after.Objects, before.Objects)
	}
	if !other.Take(other.Room()) {
		t.Fatalf("another account is refused: %+v", b.Usage())
	}
	kept := 0
	for i := range 100 { // those that are used now take the place of others, some time later
		key := fmt.Sprint(i)
		for range 2 {
			s.hot.yielded.Store(0)
			look(t, s, key)
		}
		o, _ := s.peek(key)
		if _, ok := s.hot.get(o); ok {
			kept++
		}
	}
	if now := s.Stats().MemoryBytes; kept < 50 || now > after.MemoryBytes {
		t.Errorf("%d of 100 objects are kept, in %d bytes, before %d", kept, now, after.MemoryBytes)
	}
}

// TestStoreMakesRoomInMemory checks that a store whose index finds no more memory keeps fewer objects,
// among them the newest, instead of taking more.
func TestStoreMakesRoomInMemory(t *testing.T) {
	account := budget.New(1<<30).Open("objects", 0, 4000*(perObject+4))
	s := open(t, Options{MaxBytes: 64 << 20, Memory: account})
	for i := range 10_000 {
		put(t, s, fmt.Sprint(i), body(1, 100), bodies.Meta{})
		if i%1000 == 999 {
			s.room.Lock()
			s.room.shortAt = s.room.shortAt.Add(-1 << 30) // as a second later
			s.room.Unlock()
		}
	}
	s.index.CleanUp()
	if n := s.Stats().Objects; n < 2000 || n > 4500 {
		t.Errorf("%d objects with memory for 4,000", n)
	}
	if held := account.Held(); held != s.indexed.Load() {
		t.Errorf("the account holds %d bytes, the index %d", held, s.indexed.Load())
	}
}
