package squid

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"testing"
)

func build(t testing.TB, entries, capacity, bitsPerEntry int, mirror bool) *Digest {
	t.Helper()
	b, err := NewBuilder(capacity, bitsPerEntry)
	if err != nil {
		t.Fatal(err)
	}
	for i := range entries {
		b.Add(KeyOf(Get, goldenURL(i), ""))
	}
	if mirror {
		b.Mirror()
	}
	d, err := b.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestBuiltDigestsAreRead(t *testing.T) {
	for _, entries := range []int{0, 1, 2, 7, 1000, 20_000} {
		for _, bits := range []int{5, 16, 32, 127} {
			d := build(t, entries, max(entries, 1), bits, false)
			again, err := decode(encode(d))
			if err != nil {
				t.Errorf("%d entries of %d bits: %v", entries, bits, err)
				continue
			}
			for i := range entries {
				if !again.MayContain(KeyOf(Get, goldenURL(i), "")) {
					t.Fatalf("%d entries of %d bits: entry %d is missing", entries, bits, i)
				}
			}
			if n := again.Entries(); entries >= 1000 && math.Abs(float64(n-entries)) > 0.03*float64(entries) {
				t.Errorf("%d entries of %d bits are estimated to be %d", entries, bits, n)
			}
		}
	}
}

// A digest that would crash a Squid, or that it would refuse, cannot be built.
func TestBuilderRefuses(t *testing.T) {
	for _, c := range [][2]int{{0, 5}, {-1, 5}, {100, 0}, {100, -1}, {100, 128}, {100, 255}, {1 << 31 / 16, 16}, {math.MaxInt, 127}} {
		if _, err := NewBuilder(c[0], c[1]); err == nil {
			t.Errorf("NewBuilder(%d, %d) made a header that crashes a Squid", c[0], c[1])
		}
	}
	b, err := NewBuilder(100, 5)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		b.Add(KeyOf(Get, goldenURL(i), ""))
	}
	if _, err := b.Digest(); !errors.Is(err, ErrFull) {
		t.Errorf("200 entries in room for 100: %v", err)
	}
}

// damaged returns the mask that a receiver with Squid bug 5510 stores, if its first buffer had
// n bytes, header included.
func damaged(mask []byte, n int) []byte {
	got := bytes.Clone(mask)
	for j := misplaced; j < min(n-misplaced, len(mask)); j++ {
		got[j] = mask[j-misplaced]
	}
	return got
}

func TestMirroredMaskSurvivesBug5510(t *testing.T) {
	sizes := []int{1, 2, 5, 10, 20, 31, 32, 33, 50, 63, 64, 65, 100, 127, 128, 150, 200, 300, 500, 700,
		1000, 1500, 1983, 1984, 1985, 2047, 2048, 5000, 20_000, 50_000}
	buffers := []int{128, 129, 256, 257, 300, 700, 1000, 2048, 4095, 4096}
	plain := 0
	for _, entries := range sizes {
		sent, unmirrored := build(t, entries, entries, 16, true), build(t, entries, entries, 16, false)
		if sent.Fill() > 0.6 {
			t.Errorf("%d entries: fill %.2f", entries, sent.Fill())
		}
		for _, n := range buffers {
			got := &Digest{header: sent.header, mask: damaged(sent.mask, n)}
			bare := &Digest{header: sent.header, mask: damaged(unmirrored.mask, n)}
			for i := range entries {
				k := KeyOf(Get, goldenURL(i), "")
				if !sent.MayContain(k) || !got.MayContain(k) {
					t.Fatalf("%d entries, %d bytes at first: entry %d is lost", entries, n, i)
				}
				if !bare.MayContain(k) {
					plain++
				}
			}
		}
	}
	if plain == 0 {
		t.Error("the test's damage loses no entry of a mask without Mirror, so the test shows nothing")
	}
}

// The false positives that Mirror costs, for a correct receiver and for one that misplaces the
// whole first buffer.
func TestMirroredMaskFalsePositives(t *testing.T) {
	for _, c := range []struct {
		entries, bits int
		most          float64
	}{{500, 32, 0.005}, {500, 16, 0.025}, {5000, 16, 0.01}, {5000, 32, 0.002}, {50_000, 16, 0.004}} {
		sound := build(t, c.entries, c.entries, c.bits, true)
		for name, d := range map[string]*Digest{"sound": sound, "damaged": {header: sound.header, mask: damaged(sound.mask, buffer)}} {
			const asked = 200_000
			falsely := 0
			for i := range asked {
				if d.MayContain(KeyOf(Get, fmt.Sprintf("http://elsewhere.example/%d", i), "")) {
					falsely++
				}
			}
			rate := float64(falsely) / asked
			t.Logf("%d entries of %d bits, %s: %.3f %%", c.entries, c.bits, name, 100*rate)
			if rate > c.most {
				t.Errorf("%d entries of %d bits, %s: %.4f false positives, want at most %.4f", c.entries, c.bits, name, rate, c.most)
			}
		}
	}
}

// FuzzRoundTrip: added entries are found, before and after encoding and decoding.
func FuzzRoundTrip(f *testing.F) {
	f.Add("http://example.com/", "http://example.com/?q", uint16(3), byte(16), true)
	f.Add("", "\x00", uint16(0), byte(255), false)
	f.Fuzz(func(t *testing.T, one, two string, capacity uint16, bits byte, mirror bool) {
		b, err := NewBuilder(int(capacity), int(bits))
		if err != nil {
			if capacity > 0 && bits > 0 && bits <= maxBitsPerEntry {
				t.Fatal(err)
			}
			return
		}
		b.Add(KeyOf(Get, one, ""))
		b.Add(KeyOf(Head, two, "accept"))
		if mirror {
			b.Mirror()
		}
		d, err := b.Digest()
		if errors.Is(err, ErrFull) {
			return
		}
		again, err := decode(encode(d))
		if err != nil || !again.MayContain(KeyOf(Get, one, "")) || !again.MayContain(KeyOf(Head, two, "accept")) {
			t.Fatalf("%v after decoding: %v", d, err)
		}
	})
}

func BenchmarkMayContain(b *testing.B) {
	d := build(b, 100_000, 100_000, 16, true)
	keys := make([]Key, 1024)
	for i := range keys {
		keys[i] = KeyOf(Get, goldenURL(i*1000), "")
	}
	for i := 0; b.Loop(); i++ {
		d.MayContain(keys[i%len(keys)])
	}
}

func BenchmarkBuild(b *testing.B) {
	const entries = 100_000
	for b.Loop() {
		build(b, entries, entries, 16, true)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/entries, "ns/entry")
}
