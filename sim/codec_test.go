package main

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// Every codec decodes what it encoded: dense and sparse arrays, of whole words or not.
func TestCodecsRoundTrip(t *testing.T) {
	all, err := codecs()
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range []codecInput{{n: 1, mn: 1, k: 1}, {n: 10, mn: 6.5, k: 1}, {n: 5000, mn: 8, k: 5}, {n: 5000, mn: 92, k: 1},
		{n: 20000, mn: 92, k: 1, c: 0.01}, {n: 300_000, mn: 12.6, k: 2}} {
		if in.n > 100_000 && testing.Short() {
			continue // one goroutine codes
		}
		a := in.draw(rand.New(rand.NewPCG(1, 2)))
		for _, c := range all {
			code, err := c.encode([]byte("prefix"), a)
			if err != nil {
				t.Errorf("%s: encode(%s) = %v", c.name, in.name(), err)
				continue
			}
			code, kept := bytes.CutPrefix(code, []byte("prefix"))
			back := &bitArray{m: a.m, x: a.x, words: make([]uint64, len(a.words)), bytes: make([]byte, len(a.bytes))}
			if err := c.decode(back, code); err != nil || !kept {
				t.Errorf("%s: decode(%s) = %v, prefix kept: %v", c.name, in.name(), err, kept)
			} else if c.inWords && !slices.Equal(back.words, a.words) || !c.inWords && !bytes.Equal(back.bytes, a.bytes) {
				t.Errorf("%s: %s changed", c.name, in.name())
			}
		}
	}
}

// A delta has about as many ones as follow from its share of replaced keys.
func TestCodecInputs(t *testing.T) {
	for _, in := range codecInputs() {
		if in.n > 10_000 {
			in.n = 50_000
		}
		a := in.draw(rand.New(rand.NewPCG(3, 4)))
		want := float64(a.m) * onesShare(in)
		if got := float64(a.x); got < 0.95*want || got > 1.05*want {
			t.Errorf("%s has %v ones, want about %.0f", in.name(), got, want)
		}
	}
}

func onesShare(in codecInput) float64 {
	p := zeros(in.mn, float64(in.k))
	if in.c == 0 {
		return 1 - p
	}
	return 2 * p * (1 - zeros(in.mn, in.c*float64(in.k)))
}
