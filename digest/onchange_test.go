package digest

import (
	"sync"
	"sync/atomic"
	"testing"
)

// Whenever the contents differ from the frozen ones, the function of OnChange was called after the freeze.
func TestOnChange(t *testing.T) {
	key := func(i int) Key { return Key(uint64(i+1) * golden) }
	for name, g := range map[string]Geometry{
		"one hash": {Bits: 1 << 20, Hashes: 1}, "several hashes": {Bits: 1 << 16, Hashes: 4}, "array": {Bits: 1 << 12, Hashes: 2},
	} {
		t.Run(name, func(t *testing.T) {
			c := counting(t, g, key(0))
			var called atomic.Int64
			within(c).OnChange(func() { called.Add(1) })
			var held []Key
			for i := range 2000 {
				held = append(held, key(i))
			}
			rebuild := func() { // as a Set does
				fresh := newCounters(g.normal())
				fresh.add(held[0])
				c.replace(fresh)
			}
			for _, row := range []struct {
				name string
				do   func()
				want bool
			}{
				{"the freeze of what was there before", func() { c.Advance() }, false},
				{"a key that is there", func() { c.Add(key(0)) }, false},
				{"a key less that is still there", func() { c.Remove(key(0)) }, false},
				{"a new key", func() { c.Add(key(1)) }, true},
				{"its removal", func() { c.Remove(key(1)) }, false},
				{"the key again", func() { c.Add(key(1)) }, true},
				{"a removal", func() { c.Remove(key(0)) }, true},
				{"many keys", func() {
					for _, k := range held {
						c.Add(k)
					}
				}, true},
				{"a removal among many", func() { c.Remove(key(77)) }, true},
				{"a rebuild", rebuild, true},
				{"a rebuild again", rebuild, true},
				{"a new key after a rebuild", func() { c.Add(key(9)) }, true},
			} {
				called.Store(0)
				row.do()
				if got := called.Load() > 0; got != row.want {
					t.Errorf("%s: called = %v, want %v", row.name, got, row.want)
				}
				if row.name != "a new key" {
					c.Advance()
				}
			}
		})
	}
}

// The same with many writers and a reader that freezes when it is called.
func TestOnChangeWithManyWriters(t *testing.T) {
	c := counting(t, Geometry{Bits: 1 << 20, Hashes: 1})
	called := make(chan struct{}, 1)
	within(c).OnChange(func() {
		select {
		case called <- struct{}{}:
		default:
		}
	})
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := range 20_000 {
				c.Add(Key(uint64(4*i+w+1) * golden))
			}
		})
	}
	ended := make(chan struct{})
	go func() { writers.Wait(); close(ended) }()
	for open := true; open; {
		select {
		case <-called:
			c.Advance()
		case <-ended:
			open = false
		}
	}
	select {
	case <-called:
		c.Advance()
	default:
	}
	if n := c.Changed(); n != 0 {
		t.Errorf("%d changes, and no call since the last freeze", n)
	}
}
