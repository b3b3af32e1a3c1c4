package rivals

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/summarycache/summarycache/sim/lab"
)

// Every codec decodes what it encoded: dense and sparse arrays, of whole words or not.
func TestCodecsRoundTrip(t *testing.T) {
	all, err := codecs()
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range []lab.Input{{N: 1, MN: 1, K: 1}, {N: 10, MN: 6.5, K: 1}, {N: 5000, MN: 8, K: 5}, {N: 5000, MN: 92, K: 1},
		{N: 20000, MN: 92, K: 1, C: 0.01}, {N: 300_000, MN: 12.6, K: 2}} {
		if in.N > 100_000 && testing.Short() {
			continue // one goroutine codes
		}
		a := drawInput(in, rand.New(rand.NewPCG(1, 2)))
		for _, c := range all {
			code, err := c.encode([]byte("prefix"), a)
			if err != nil {
				t.Errorf("%s: encode(%s) = %v", c.name, in.Name(), err)
				continue
			}
			code, kept := bytes.CutPrefix(code, []byte("prefix"))
			back := &bitArray{m: a.m, x: a.x, words: make([]uint64, len(a.words)), bytes: make([]byte, len(a.bytes))}
			if err := c.decode(back, code); err != nil || !kept {
				t.Errorf("%s: decode(%s) = %v, prefix kept: %v", c.name, in.Name(), err, kept)
			} else if c.inWords && !slices.Equal(back.words, a.words) || !c.inWords && !bytes.Equal(back.bytes, a.bytes) {
				t.Errorf("%s: %s changed", c.name, in.Name())
			}
		}
	}
}

// A delta has about as many ones as follow from its share of replaced keys.
func TestCodecInputs(t *testing.T) {
	for _, in := range codecInputs() {
		if in.N > 10_000 {
			in.N = 50_000
		}
		a := drawInput(in, rand.New(rand.NewPCG(3, 4)))
		want := float64(a.m) * onesShare(in)
		if got := float64(a.x); got < 0.95*want || got > 1.05*want {
			t.Errorf("%s has %v ones, want about %.0f", in.Name(), got, want)
		}
	}
}

func onesShare(in lab.Input) float64 {
	p := lab.Zeros(in.MN, float64(in.K))
	if in.C == 0 {
		return 1 - p
	}
	return 2 * p * (1 - lab.Zeros(in.MN, in.C*float64(in.K)))
}
