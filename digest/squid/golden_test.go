package squid

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"testing"
)

func decode(b []byte) (*Digest, error) { return Read(bytes.NewReader(b), -1, Limits{}) }

func encode(d *Digest) []byte {
	var b bytes.Buffer
	d.WriteTo(&b)
	return b.Bytes()
}

// golden is a digest that Squid 5.7 made of 2,000 cached URLs and its 51 icons.
func golden(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/squid57.digest")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func goldenURL(i int) string { return fmt.Sprintf("http://127.0.0.1:9000/obj/%d", i) }

func TestGoldenDigest(t *testing.T) {
	raw := golden(t)
	d, err := decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	h := d.header
	if h.Version != 5 || h.Required != 3 || h.Capacity != 2052 || h.Count != 2051 || h.MaskBytes != 1283 || h.BitsPerEntry != 5 {
		t.Errorf("header %+v", h)
	}
	positive := 0
	for i := 1; i <= 2000; i++ {
		if d.MayContain(KeyOf(Get, goldenURL(i), "")) {
			positive++
		}
	}
	if positive != 2000 {
		t.Errorf("%d of 2000 cached URLs are positive", positive)
	}
	const strangers = 1_000_000
	falsely := 0
	for i := range strangers {
		if d.MayContain(KeyOf(Get, goldenURL(1_000_000+i), "")) {
			falsely++
		}
	}
	rate, want := float64(falsely)/strangers, d.FalsePositiveRate()
	t.Logf("2000 URLs: %d positive; %d others: %.2f %% positive, fill^4 is %.2f %%; about %d entries", positive, strangers, 100*rate, 100*want, d.Entries())
	if math.Abs(rate-want) > 0.003 {
		t.Errorf("%.4f of the others are positive, want %.4f", rate, want)
	}
	if n := d.Entries(); n < 1990 || n > 2110 { // 2051, and two standard deviations
		t.Errorf("Entries() = %d, want about 2051", n)
	}
	if again := encode(d); !bytes.Equal(again, raw) {
		t.Error("the digest is not encoded as it was")
	}
	var w bytes.Buffer
	if n, err := d.WriteTo(&w); err != nil || n != int64(len(raw)) || !bytes.Equal(w.Bytes(), raw) || d.Size() != len(raw) {
		t.Errorf("WriteTo = %d, %v", n, err)
	}
}

// A digest of the same URLs has only bits that the golden one has, too: keys and positions are
// those of a Squid.
func TestBuilderAgreesWithSquid(t *testing.T) {
	theirs, err := decode(golden(t))
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewBuilder(2052, 5)
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i <= 2000; i++ {
		b.Add(KeyOf(Get, goldenURL(i), ""))
	}
	ours, err := b.Digest()
	if err != nil {
		t.Fatal(err)
	}
	for i := range ours.mask {
		if ours.mask[i]&^theirs.mask[i] != 0 {
			t.Fatalf("byte %d of the mask is %08b, which is not in the Squid's %08b", i, ours.mask[i], theirs.mask[i])
		}
	}
	if extra := theirs.ones - ours.ones; extra < 0 || extra > 51*Hashes {
		t.Errorf("the Squid has %d ones more, want at most those of 51 icons", extra)
	}
}
