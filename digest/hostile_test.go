package digest

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"
)

// hostile is an attacker who chooses the names of objects, and what he knows of the seed.
const (
	hostileKeys = 10_000
	hostileAsks = 200_000
)

// innocent are names that nobody added.
func innocent(seed uint64) []Key {
	keys := make([]Key, hostileAsks)
	for i := range keys {
		keys[i] = KeyOfString(seed, fmt.Sprintf("http://innocent.example/%d", i))
	}
	return keys
}

func rate(f *Filter, keys []Key) float64 {
	hits := 0
	for _, k := range keys {
		if f.MayContain(k) {
			hits++
		}
	}
	return float64(hits) / float64(len(keys))
}

// spread picks, of many names, those whose positions under the attacker's seed are all new, so
// that a filter of them is as full as possible.
func spread(g Geometry, seed uint64, n int) (names []string) {
	taken := make(map[uint64]bool)
	var buf [maxHashes]uint64
next:
	for i := 0; len(names) < n; i++ {
		name := fmt.Sprintf("http://hostile.example/%d", i)
		positions := g.positions(&buf, KeyOfString(seed, name))
		for _, p := range positions {
			if taken[p] {
				continue next
			}
		}
		if len(positions) < g.Hashes {
			continue
		}
		for _, p := range positions {
			taken[p] = true
		}
		names = append(names, name)
	}
	return names
}

// TestHostileKeys: names that are chosen under a wrong guess of the seed raise the
// false-positive rate by less than a tenth. Under the right seed they raise it as much as names
// can that share no position.
func TestHostileKeys(t *testing.T) {
	if testing.Short() {
		t.Skip("counts false positives in one goroutine")
	}
	const seed, guess = 0x5eed, 0x6e55
	asked := innocent(seed)
	for _, g := range []Geometry{
		{Bits: 8 * hostileKeys, Hashes: 5},
		{Bits: 14 * hostileKeys, Hashes: 2},
		{Bits: 100 * hostileKeys, Hashes: 1},
	} {
		_, fair := g.predict(hostileKeys)
		room := hostileKeys
		if g.Hashes > 2 {
			room = hostileKeys / 2 // more do not fit without sharing
		}
		measure := func(names []string) float64 {
			c := counting(t, g)
			for _, name := range names {
				c.Add(KeyOfString(seed, name))
			}
			for i := len(names); i < hostileKeys; i++ {
				c.Add(KeyOfString(seed, fmt.Sprintf("http://filler.example/%d", i)))
			}
			return rate(c.Advance(), asked)
		}
		unknown, known := measure(spread(g, guess, room)), measure(spread(g, seed, room))
		t.Logf("%v: predicted %.5f; chosen without the seed %.5f (×%.2f), with it %.5f (×%.2f)",
			g, fair, unknown, unknown/fair, known, known/fair)
		noise := 4 * math.Sqrt(fair/hostileAsks) / fair
		if unknown > fair*(1.1+noise) {
			t.Errorf("%v: without the seed the rate rose from %.5f to %.5f", g, fair, unknown)
		}
		if g.Hashes > 1 && known < fair*1.1 {
			t.Errorf("%v: with the seed the rate only rose from %.5f to %.5f: the test shows nothing", g, fair, known)
		}
	}
}

// TestHostileAsker: an attacker who knows the seed can choose requests that are false positives
// every time. One who does not know it has only twins, which XXH64 has under every seed: one
// false hit for each name that he gets cached.
func TestHostileAsker(t *testing.T) {
	if testing.Short() {
		t.Skip("counts false positives in one goroutine")
	}
	const seed, guess = 0x5eed, 0x6e55
	g := Geometry{Bits: 1000 * hostileKeys, Hashes: 1}
	fill := func(seed uint64) *Filter {
		c := counting(t, g)
		for i := range hostileKeys {
			c.Add(KeyOfString(seed, fmt.Sprintf("http://filler.example/%d", i)))
		}
		return c.Advance()
	}
	victim, model := fill(seed), fill(guess)
	asked, hits := 0, 0
	for i := 0; asked < 500; i++ {
		name := fmt.Sprintf("http://hostile.example/%d", i)
		if model.MayContain(KeyOfString(guess, name)) { // what he believes to be a false positive
			asked++
			if victim.MayContain(KeyOfString(seed, name)) {
				hits++
			}
		}
	}
	if hits > 8 { // 0.5 expected
		t.Errorf("without the seed, %d of %d chosen names are false positives", hits, asked)
	}
	c := counting(t, g)
	found := 0
	for i := range 100 {
		one, two := twins(string(binary.BigEndian.AppendUint64(nil, uint64(i)|1<<60)), "/c/d/efg")
		c.Add(KeyOf(seed, one))
		if c.Advance().MayContain(KeyOf(seed, two)) {
			found++
		}
	}
	if found != 100 {
		t.Errorf("%d of 100 twins are found; the security notes say all", found)
	}
}
