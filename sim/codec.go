package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

var _ = experiments.add(Experiment{
	Name:    "codec",
	Summary: "our coders beside fse, huff0, zstd, s2, Rice and raw: bytes against the limit, speed against fse",
	Run:     runCodec,
})

const (
	codecRounds = 7
	// A codec that takes this long for one array runs in slowRounds only.
	codecSlow  = 250 * time.Millisecond
	slowRounds = 3
)

// A codecInput is a filter of n keys, m = mn·n positions and k hashes or, with
// c > 0, the exclusive-or of two between which a share c of the keys was replaced.
type codecInput struct {
	n  int
	mn float64
	k  int
	c  float64
}

func codecInputs(short bool) (all []codecInput) {
	shapes := []codecInput{{mn: 8, k: 5}, {mn: 12.6, k: 2}, {mn: 14, k: 2}, {mn: 28, k: 4}, {mn: 48, k: 3}, {mn: 92, k: 1}}
	for _, n := range []int{10_000, 1_000_000} {
		for _, s := range shapes {
			s.n = n
			all = append(all, s)
		}
	}
	for _, c := range []float64{0.05, 0.01} {
		for _, s := range []codecInput{{mn: 8, k: 5}, {mn: 12, k: 3}, {mn: 13, k: 2}, {mn: 16, k: 3}, {mn: 32, k: 2}, {mn: 48, k: 2}, {mn: 92, k: 1}} {
			s.n, s.c = 1_000_000, c
			all = append(all, s)
		}
	}
	if short {
		return all[:len(shapes)]
	}
	return all
}

func (in codecInput) name() string {
	name := fmt.Sprintf("n=%d (%g,%d)", in.n, in.mn, in.k)
	if in.c > 0 {
		name += fmt.Sprintf(" delta %g %%", 100*in.c)
	}
	return name
}

// draw makes the array, of positions chosen independently and uniformly, and for
// a delta the filter that it applies to.
func (in codecInput) draw(rng *rand.Rand) (a *bitArray, old []uint64) {
	m := uint64(in.mn * float64(in.n))
	words := make([]uint64, (m+63)/64)
	set := func(words []uint64, keys int) {
		for range keys * in.k {
			p := rng.Uint64N(m)
			words[p>>6] |= 1 << (p & 63)
		}
	}
	if in.c == 0 {
		set(words, in.n)
		return newBitArray(m, words), nil
	}
	replaced := int(in.c * float64(in.n))
	stay, gone, come := words, make([]uint64, len(words)), make([]uint64, len(words))
	set(stay, in.n-replaced)
	set(gone, replaced)
	set(come, replaced)
	for i, s := range stay {
		gone[i] |= s
		words[i] = gone[i] ^ (s | come[i])
	}
	return newBitArray(m, words), gone
}

// codecTimes are a codec's times for one input, one an entry for each round.
type codecTimes struct {
	code           []byte
	encode, decode []time.Duration
}

func runCodec(ctx context.Context, job *Job) error {
	all, err := codecs()
	if err != nil {
		return err
	}
	rounds := max(job.Trials, codecRounds)
	if job.Short {
		rounds = 1
	}
	for i, in := range codecInputs(job.Short) {
		a, _ := in.draw(job.Rand(uint64(i)))
		limit := log2Choose(a.m, a.x) / 8
		times := make([]codecTimes, len(all))
		for round := range rounds {
			for j := range all {
				if err := ctx.Err(); err != nil {
					return err
				}
				job.Progress("%s, round %d: %s", in.name(), round+1, all[j].name)
				if err := times[j].run(&all[j], a, round); err != nil {
					return fmt.Errorf("%s on %s: %w", all[j].name, in.name(), err)
				}
			}
		}
		codecTable(job, in, a, limit, all, times)
	}
	if err := codecGiven(ctx, job, rounds); err != nil {
		return err
	}
	return codecWorkers(ctx, job, rounds)
}

// run encodes and decodes once, and checks that the array came back.
func (t *codecTimes) run(c *codec, a *bitArray, round int) (err error) {
	if round >= slowRounds && t.encode[0]+t.decode[0] > codecSlow {
		return nil
	}
	start := time.Now()
	t.code, err = c.encode(t.code[:0], a)
	t.encode = append(t.encode, time.Since(start))
	if err != nil {
		return err
	}
	back := &bitArray{m: a.m, x: a.x, words: make([]uint64, len(a.words)), bytes: make([]byte, len(a.bytes))}
	clear(back.words) // so that no page is touched for the first time below
	clear(back.bytes)
	start = time.Now()
	err = c.decode(back, t.code)
	t.decode = append(t.decode, time.Since(start))
	if err != nil {
		return err
	}
	if c.inWords && !slices.Equal(back.words, a.words) || !c.inWords && !bytes.Equal(back.bytes, a.bytes) {
		return fmt.Errorf("what was decoded is not what was encoded")
	}
	return nil
}

func codecTable(job *Job, in codecInput, a *bitArray, limit float64, all []codec, times []codecTimes) {
	table := job.Table(fmt.Sprintf("%s: %d bits of which %d are one, limit %.1f bytes", in.name(), a.m, a.x, limit),
		Column{Name: "codec"},
		Column{Name: "bytes"},
		Column{Name: "over_limit_bytes", Head: "over limit", Format: "%+.1f"},
		Column{Name: "ratio", Head: "x limit", Format: "%.5f"},
		Column{Name: "encode_mb_s", Head: "encode MB/s", Format: "%.0f", Loose: AnyValue},
		Column{Name: "decode_mb_s", Head: "decode MB/s", Format: "%.0f", Loose: AnyValue},
		Column{Name: "encode_x_fse", Head: "x fse", Format: "%.2f", Loose: AnyValue},
		Column{Name: "decode_x_fse", Head: "x fse", Format: "%.2f", Loose: AnyValue})
	reference := times[slices.IndexFunc(all, func(c codec) bool { return c.name == "fse" })]
	speed := func(ds []time.Duration) float64 { return float64(len(a.bytes)) / 1e6 / middle(ds).Seconds() }
	for i, c := range all {
		t := times[i]
		table.Row(c.name, len(t.code), float64(len(t.code))-limit, float64(len(t.code))/limit,
			speed(t.encode), speed(t.decode), inPairs(reference.encode, t.encode), inPairs(reference.decode, t.decode))
	}
	table.Note("medians of %d rounds, the codecs by turns in each; of %d for those that take over %v", len(reference.encode), slowRounds, codecSlow)
}

func middle(ds []time.Duration) time.Duration {
	ds = slices.Sorted(slices.Values(ds))
	return ds[len(ds)/2]
}

// inPairs is the median, over the rounds that both ran in, of how many times
// faster b was than a.
func inPairs(a, b []time.Duration) float64 {
	ratios := make([]float64, min(len(a), len(b)))
	for i := range ratios {
		ratios[i] = a[i].Seconds() / b[i].Seconds()
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}
