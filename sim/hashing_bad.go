package main

import (
	"encoding/binary"
	"hash/crc32"
	"strconv"

	"github.com/summarycache/summarycache/arith"
)

// A badHash turns the i-th name into positions by a method that looks like one of the
// documents' methods but is not random enough.
type badHash struct {
	name, why string
	m         uint64
	k         int
	positions func(buf []uint64, i, m uint64) []uint64 // stored in buf, which has room for k
	// choose picks the names that are added; nil takes the first ones.
	choose func(m uint64, k, n int) []uint64
}

const badKeys = 10_000

// badHashName returns names of one length, like many names with a counter.
func badHashName(i uint64) []byte {
	text := strconv.FormatUint(i+1_000_000_000, 10)
	return append([]byte("http://www.example.com/item?number="), text...)
}

var badHashesTried = []badHash{
	{name: "x and 5x+4 mod m, m a multiple of 5", why: "the second takes m/5 values only, and both depend on x mod m alone",
		m: 80_000, k: 2, positions: linearPair},
	{name: "x and 5x+4 mod m, m prime", why: "the second is a function of the first: two keys that meet once meet twice, and k=2 is k=1",
		m: 80_021, k: 2, positions: linearPair},
	{name: "CRC-32 under k seeds, m = 2^17", why: "CRC is linear: under another seed all names of one length move alike, and k=5 is k=1",
		m: 1 << 17, k: 5, positions: func(out []uint64, i, m uint64) []uint64 {
			name := badHashName(i)
			for j := range out {
				out[j] = uint64(crc32.Update(uint32(j)*0x9e3779b9, crc32.IEEETable, name)) % m
			}
			return out
		}},
	{name: "31-polynomial of the name, k multiples mod m", why: "names that count up have sums that nearly count up",
		m: 80_000, k: 5, positions: func(out []uint64, i, m uint64) []uint64 {
			sum := uint64(0)
			for _, c := range badHashName(i) {
				sum = (sum*31 + uint64(c)) & 0xffffffff
			}
			for j := range out {
				out[j] = sum * uint64(j+1) % m
			}
			return out
		}},
	{name: "a counter as the key, k = 1", why: "multiply-high takes the upper bits, and a counter has none: digests need keys made by KeyOf",
		m: 920_000, k: 1, positions: oursPositions},
	{name: "a counter as the key, k = 5", why: "the first position is wasted; the others start from a mixed step",
		m: 80_000, k: 5, positions: oursPositions},
	{name: "good, the seed unknown", why: "as predicted",
		m: 80_000, k: 5, positions: seededPositions},
	{name: "good, names chosen with the seed known", why: "names are tried until all of their positions are new: hence the secret seed",
		m: 80_000, k: 5, positions: seededPositions, choose: chooseCovering},
}

func linearPair(out []uint64, i, m uint64) []uint64 {
	x := mix64(i) >> 32 // numbers without order
	return append(out[:0], x%m, (5*x+4)%m)
}

// oursPositions returns the positions of package digest, with the number itself as the key.
func oursPositions(buf []uint64, i, m uint64) []uint64 {
	return hashSchemes[1].positions(buf, nil, i, m)
}

func seededPositions(buf []uint64, i, m uint64) []uint64 {
	var name [8]byte
	binary.LittleEndian.PutUint64(name[:], i)
	source := nameSource{prefix: string(name[:])}
	_, key := source.next()
	return oursPositions(buf, key, m)
}

// chooseCovering picks names that each set k new positions, as long as it finds such names in a
// few thousand tries.
func chooseCovering(m uint64, k, n int) []uint64 {
	const tries = 5_000
	taken := newBitmap(m)
	positions := make([]uint64, k)
	var chosen []uint64
	for i := uint64(0); len(chosen) < n; {
		best, bestNew := i, -1
		for range tries {
			fresh := 0
			for _, p := range seededPositions(positions, i, m) {
				if !taken.has(p) {
					fresh++
				}
			}
			if fresh > bestNew {
				best, bestNew = i, fresh
			}
			if i++; fresh == k {
				break
			}
		}
		chosen = append(chosen, best)
		taken.set(seededPositions(positions, best, m)...)
	}
	return chosen
}

// badHashes shows the effect on false positives and on the coded size.
func badHashes(job *Job, lookups int) {
	table := job.Table("Bad hashes: n = 10,000",
		Column{Name: "hash"}, Column{Name: "m"}, Column{Name: "k"},
		Column{Name: "predicted", Head: "f predicted", Format: "%.4g"}, Column{Name: "measured", Head: "f measured", Format: "%.4g", Loose: AnyValue},
		Column{Name: "times", Format: "%.2f", Loose: AnyValue}, Column{Name: "sent_predicted", Head: "z/n predicted", Format: "%.3f"},
		Column{Name: "sent", Head: "z/n", Format: "%.3f", Loose: 0.005}, Column{Name: "why"})
	lookups = min(lookups, 1_000_000)
	for _, b := range badHashesTried {
		f, sent := b.try(lookups)
		predicted := falsePositives(float64(b.m)/badKeys, float64(b.k))
		table.Row(b.name, b.m, b.k, figures(predicted, 6), figures(f, 6), figures(f/predicted, 4),
			figures(sentBits(float64(b.m)/badKeys, float64(b.k)), 6), figures(sent, 6), b.why)
	}
}

func (b badHash) try(lookups int) (f, bitsPerKey float64) {
	words := newBitmap(b.m)
	positions := make([]uint64, b.k)
	set := func(i uint64) { words.set(b.positions(positions, i, b.m)...) }
	if b.choose != nil {
		for _, i := range b.choose(b.m, b.k, badKeys) {
			set(i)
		}
	} else {
		for i := range uint64(badKeys) {
			set(i)
		}
	}
	const absent = 1 << 31 // no name from here on was added
	hits := 0
	for i := range uint64(lookups) {
		if words.hasAll(b.positions(positions, absent+i, b.m)) {
			hits++
		}
	}
	coded := arith.AppendBitmap(nil, arith.Choose(b.m, uint64(words.ones())), b.m, words)
	return float64(hits) / float64(lookups), 8 * float64(len(coded)) / badKeys
}
