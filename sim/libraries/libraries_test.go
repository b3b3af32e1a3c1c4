// Package libraries measures rivals that have a library, beside ours. It is a module of its own, so
// that their dependencies are not those of the main module:
//
//	cd sim/libraries && go test -v .
package libraries

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/FastFilter/xorfilter"
	"github.com/RoaringBitmap/roaring/v2"

	"github.com/summarycache/summarycache/arith"
	"github.com/summarycache/summarycache/digest"
)

const keys = 100_000

func randomKeys(seed uint64) []uint64 {
	rng := rand.New(rand.NewPCG(seed, 42))
	all := make([]uint64, keys)
	for i := range all {
		all[i] = rng.Uint64()
	}
	return all
}

// ours is a filter of one hash at a rate of f.
func ours(t *testing.T, f float64, all []uint64) *digest.Filter {
	t.Helper()
	held := make([]digest.Key, len(all))
	for i, k := range all {
		held[i] = digest.Key(k)
	}
	filter, err := digest.FilterOf(digest.Geometry{Bits: uint64(keys / f), Hashes: 1}, digest.Version{Epoch: 1}, slices.Values(held))
	if err != nil {
		t.Fatal(err)
	}
	return filter
}

// TestRoaring compares the positions of filters of one hash in a Roaring bitmap with package arith's
// code and with package digest's memory.
func TestRoaring(t *testing.T) {
	for _, mn := range []float64{8, 92, 1000, 10_000} {
		f := ours(t, 1/mn, randomKeys(1))
		bitmap := roaring.New()
		var positions []uint64
		for p := range f.Positions() {
			bitmap.Add(uint32(p))
			positions = append(positions, p)
		}
		bitmap.RunOptimize()
		perKey := 8 / float64(keys)
		theirs := perKey * float64(bitmap.GetSerializedSizeInBytes())
		code := perKey * float64(len(arith.AppendSet(nil, arith.Choose(f.Geometry().Bits, f.Ones()), f.Geometry().Bits, positions)))
		t.Logf("m/n = %6g: Roaring %.2f bits a key, coded by package arith %.2f, in memory in package digest %.2f", mn, theirs, code, perKey*float64(f.MemoryBytes()))
		text, err := bitmap.ToBytes()
		if err != nil || len(text) != int(bitmap.GetSerializedSizeInBytes()) || bitmap.GetCardinality() != f.Ones() {
			t.Fatalf("%d bytes of %d positions: %v", len(text), bitmap.GetCardinality(), err)
		}
		if code > theirs {
			t.Errorf("m/n = %g: package arith takes %.2f bits a key, Roaring %.2f", mn, code, theirs)
		}
	}
}

// TestBinaryFuse compares the library of the authors of binary fuse filters with ours, at its two rates.
func TestBinaryFuse(t *testing.T) {
	all := randomKeys(2)
	eight, err1 := xorfilter.PopulateBinaryFuse8(slices.Clone(all))
	sixteen, err2 := xorfilter.NewBinaryFuse[uint16](slices.Clone(all))
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	for _, c := range []struct {
		bits     int
		size     int // of the fingerprints, in bytes
		contains func(key uint64) bool
	}{{8, len(eight.Fingerprints), eight.Contains}, {16, 2 * len(sixteen.Fingerprints), sixteen.Contains}} {
		f := math.Exp2(-float64(c.bits))
		own := ours(t, f, all)
		const probes = 4_000_000
		rng := rand.New(rand.NewPCG(3, 4))
		theirs, ourFalse := 0, 0
		for range probes {
			k := rng.Uint64()
			if c.contains(k) {
				theirs++
			}
			if own.MayContain(digest.Key(k)) {
				ourFalse++
			}
		}
		for _, k := range all {
			if !c.contains(k) || !own.MayContain(digest.Key(k)) {
				t.Fatal("a key is denied")
			}
		}
		perKey := 8 / float64(keys)
		name := fmt.Sprintf("f = 2^-%d", c.bits)
		t.Logf("%s: binary fuse filter %.2f bits a key, f over that %.2f; ours %.2f in memory, %.2f as a message, %.2f", name,
			perKey*float64(c.size), float64(theirs)/probes/f, perKey*float64(own.MemoryBytes()), perKey*float64(len(own.AppendTo(nil))), float64(ourFalse)/probes/f)
		for _, n := range []int{theirs, ourFalse} {
			if want := f * probes; math.Abs(float64(n)-want) > 5*math.Sqrt(want) {
				t.Errorf("%s: %d false positives of %d keys, want %.0f", name, n, probes, want)
			}
		}
		if size := perKey * float64(c.size); size < float64(c.bits) || size > 1.2*float64(c.bits) {
			t.Errorf("%s: %.2f bits a key", name, size)
		}
	}
}
