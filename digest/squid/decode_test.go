package squid

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"testing"
	"testing/iotest"

	"github.com/summarycache/summarycache/digest"
)

// change returns the golden digest with bytes of it replaced.
func change(t testing.TB, at int, by ...byte) []byte {
	b := bytes.Clone(golden(t))
	copy(b[at:], by)
	return b
}

func word(n int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }

// sized returns a header for capacity entries of bits bits, with a consistent mask size and no
// mask.
func sized(t testing.TB, capacity int32, bits byte, mask int32) []byte {
	b := change(t, 4, word(capacity)...)
	copy(b[16:], word(mask))
	b[20] = bits
	return b[:headerSize]
}

type malformed struct {
	name     string
	b        []byte
	sentinel error
	field    string
}

// malformations are the ways in which a digest is refused.
func malformations(t testing.TB) []malformed {
	ones := bytes.Clone(golden(t))
	for i := headerSize; i < len(ones); i++ {
		ones[i] |= 0b10110111
	}
	whole := golden(t)
	return []malformed{
		{"nothing", nil, digest.ErrCorrupt, "header"},
		{"half a header", whole[:127], digest.ErrCorrupt, "header"},
		{"a later version required", change(t, 2, 0, 6), digest.ErrVersion, "required version"},
		{"a version before 3", change(t, 0, 0, 2, 0, 2), digest.ErrVersion, "version"},
		{"a version that cannot read itself", change(t, 0, 0, 4, 0, 5), digest.ErrCorrupt, "required version"},
		{"no capacity", sized(t, 0, 5, 1), digest.ErrCorrupt, "capacity"},
		{"a negative capacity", sized(t, -2052, 5, 1283), digest.ErrCorrupt, "capacity"},
		{"no mask", sized(t, 2052, 5, 0), digest.ErrCorrupt, "mask size"},
		{"a negative mask", sized(t, 2052, 5, -1283), digest.ErrCorrupt, "mask size"},
		{"no bits per entry", change(t, 20, 0), digest.ErrCorrupt, "bits per entry"},
		{"128 bits per entry", sized(t, 2052, 128, 2052*16), digest.ErrCorrupt, "bits per entry"},
		{"255 bits per entry", sized(t, 8, 255, 255), digest.ErrCorrupt, "bits per entry"},
		{"2^31 bits", sized(t, 1<<27, 16, 1<<28), digest.ErrCorrupt, "capacity"},
		{"2^32 bits, counted in 32", sized(t, 1<<28, 16, 1), digest.ErrCorrupt, "capacity"},
		{"three hash functions", change(t, 21, 3), digest.ErrCorrupt, "hash functions"},
		{"a mask too long for its capacity", sized(t, 2052, 5, 1284), digest.ErrCorrupt, "mask size"},
		{"a mask too short for its capacity", sized(t, 2052, 5, 1282), digest.ErrCorrupt, "mask size"},
		{"a mask of 256 MiB", sized(t, 1<<28, 7, 7<<25), digest.ErrTooLarge, "mask size"},
		{"a mask that breaks off", whole[:len(whole)-1], digest.ErrCorrupt, "mask"},
		{"bytes behind the mask", append(bytes.Clone(whole), 0), digest.ErrCorrupt, "mask"},
		{"more than 65 % ones", ones, digest.ErrCorrupt, "mask"},
	}
}

func TestMalformedDigestsAreRefused(t *testing.T) {
	for _, m := range malformations(t) {
		_, err := decode(m.b)
		var format *digest.FormatError
		if !errors.Is(err, m.sentinel) || !errors.As(err, &format) || format.Field != m.field {
			t.Errorf("%s: %v, want %v at %s", m.name, err, m.sentinel, m.field)
		}
	}
}

// Fields that a Squid accepts unchecked are accepted, and written unchanged.
func TestWhatSquidIgnoresIsKept(t *testing.T) {
	for name, b := range map[string][]byte{
		"a version after ours":  change(t, 0, 0, 6),
		"an impossible count":   change(t, 8, word(-1)...),
		"entries that left":     change(t, 12, word(17)...),
		"something in reserved": change(t, 22, 1, 2, 3),
	} {
		d, err := decode(b)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !bytes.Equal(encode(d), b) {
			t.Errorf("%s: not encoded as it was", name)
		}
	}
}

// A header with a wrong body length costs no memory for the body.
func TestNothingIsAllocatedForALie(t *testing.T) {
	lie := sized(t, 1<<24, 16, 1<<25) // 32 MiB of mask, said to be 200 bytes
	const times = 100
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		if _, err := Read(bytes.NewReader(lie), 200, Limits{}); !errors.Is(err, digest.ErrCorrupt) {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	allocated := (after.TotalAlloc - before.TotalAlloc) / times
	if allocated > 4<<10 {
		t.Errorf("%d bytes allocated for a digest that was never sent", allocated)
	}
	if _, err := Read(bytes.NewReader(lie), -1, Limits{MaskBytes: 1 << 20}); !errors.Is(err, digest.ErrTooLarge) {
		t.Errorf("beyond the limit: %v", err)
	}
}

func TestReadInPieces(t *testing.T) {
	raw := golden(t)
	d, err := Read(iotest.OneByteReader(bytes.NewReader(raw)), int64(len(raw)), Limits{})
	if err != nil || !bytes.Equal(encode(d), raw) {
		t.Errorf("byte by byte: %v", err)
	}
	broken := errors.New("the line broke")
	for _, n := range []int{0, 60, 128, 500, len(raw)} {
		r := io.MultiReader(bytes.NewReader(raw[:n]), iotest.ErrReader(broken))
		if _, err := Read(r, int64(len(raw)), Limits{}); !errors.Is(err, broken) {
			t.Errorf("a line that broke after %d bytes: %v", n, err)
		}
	}
}

// FuzzRead: any bytes are refused, or are a digest that is encoded to the same bytes.
func FuzzRead(f *testing.F) {
	f.Add(golden(f))
	for _, m := range malformations(f) {
		f.Add(m.b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := Read(bytes.NewReader(b), -1, Limits{MaskBytes: 1 << 20})
		again, errAgain := Read(bytes.NewReader(b), int64(len(b)), Limits{MaskBytes: 1 << 20})
		var format *digest.FormatError
		switch {
		case (err == nil) != (errAgain == nil):
			t.Fatalf("without a length %v, with its length %v", err, errAgain)
		case err != nil:
			if !errors.As(err, &format) || format.Offset < 0 || format.Offset > len(b) {
				t.Fatalf("%v", err)
			}
			return
		}
		if !bytes.Equal(encode(d), b) || !bytes.Equal(encode(again), b) {
			t.Fatal("another encoding")
		}
		d.MayContain(KeyOf(Get, "http://example.com/", ""))
		if d.Entries() < 0 || d.Fill() > 0.65 || d.FalsePositiveRate() > 0.18 {
			t.Fatalf("%d entries, fill %v", d.Entries(), d.Fill())
		}
	})
}
