package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

var _ = experiments.add(Experiment{
	Name:    "codec",
	Summary: "our coders beside fse, zstd and Rice: bytes against the limit, speed against fse",
	Seconds: 34,
	Flags: func(flags *flag.FlagSet) runner {
		n, c, shapes := keysFlag(flags), sharesFlag(flags), shapesFlag(flags)
		return func(ctx context.Context, job *Job) error {
			return runCodec(ctx, job, or(ownInputs(*n, *c, *shapes), codecInputs()))
		}
	},
})

const (
	codecRounds = 7
	// A codec that takes longer than this for one array runs only slowRounds times.
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

// ownInputs returns the inputs that the flags ask for: each geometry for each number of keys,
// and for each share if there are shares. Without flags there are none.
func ownInputs(keys []int, shares []float64, shapes []shape) (all []codecInput) {
	if len(keys)+len(shares)+len(shapes) == 0 {
		return nil
	}
	for _, n := range or(keys, []int{100_000}) {
		for _, g := range or(shapes, []shape{{14, 2}, {92, 1}}) {
			for _, c := range or(shares, []float64{0}) {
				all = append(all, codecInput{n, g.mn, g.k, c})
			}
		}
	}
	return all
}

// codecInputs are filters and deltas of the geometries in the documents.
func codecInputs() (all []codecInput) {
	arrays := []codecInput{{mn: 8, k: 5}, {mn: 12.6, k: 2}, {mn: 14, k: 2}, {mn: 28, k: 4}, {mn: 48, k: 3}, {mn: 92, k: 1}}
	for _, n := range []int{10_000, 1_000_000} {
		for _, s := range arrays {
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
	return all
}

func (in codecInput) name() string {
	name := fmt.Sprintf("n=%d (%g,%d)", in.n, in.mn, in.k)
	if in.c > 0 {
		name += fmt.Sprintf(" delta %g %%", 100*in.c)
	}
	return name
}

// draw makes the array, of positions chosen independently and uniformly.
func (in codecInput) draw(rng *rand.Rand) *bitArray {
	m := uint64(in.mn * float64(in.n))
	filter := func(keys int) bitmap {
		words := newBitmap(m)
		for range keys * in.k {
			words.set(rng.Uint64N(m))
		}
		return words
	}
	if in.c == 0 {
		return newBitArray(m, filter(in.n))
	}
	replaced := int(in.c * float64(in.n))
	words, gone, come := filter(in.n-replaced), filter(replaced), filter(replaced)
	for i, stay := range words {
		words[i] = (stay | gone[i]) ^ (stay | come[i])
	}
	return newBitArray(m, words)
}

// codecTimes are a codec's times for one input, an entry for each round.
type codecTimes struct {
	code           []byte
	encode, decode []time.Duration
}

func runCodec(ctx context.Context, job *Job, inputs []codecInput) error {
	rounds := codecRounds
	if job.Short {
		rounds = 1
	}
	all, err := codecs()
	if err != nil {
		return err
	}
	table := job.Table("Filters and exclusive-or deltas by every codec",
		Column{Name: "input"},
		Column{Name: "bits", Loose: exact},
		Column{Name: "ones", Loose: exact},
		Column{Name: "limit", Format: "%.1f", Loose: exact},
		Column{Name: "codec"},
		Column{Name: "bytes", Loose: exact},
		Column{Name: "over_limit_bytes", Head: "over limit", Format: "%+.1f", Loose: 0.2},
		Column{Name: "ratio", Head: "x limit", Format: "%.5f", Loose: exact},
		Column{Name: "encode_mb_s", Head: "encode MB/s", Format: "%.0f", Loose: AnyValue},
		Column{Name: "decode_mb_s", Head: "decode MB/s", Format: "%.0f", Loose: AnyValue},
		Column{Name: "encode_x_fse", Head: "encode x fse", Format: "%.2f", Loose: AnyValue},
		Column{Name: "decode_x_fse", Head: "decode x fse", Format: "%.2f", Loose: AnyValue})
	reference := slices.IndexFunc(all, func(c codec) bool { return c.name == "fse" })
	for i, in := range inputs {
		if in.left(job) {
			for _, c := range all {
				table.skip(in.name(), nil, nil, nil, c.name)
			}
			continue
		}
		a := in.draw(job.Rand(uint64(i)))
		times := make([]codecTimes, len(all))
		for round := range rounds {
			for j := range all {
				if err := ctx.Err(); err != nil {
					return err
				}
				job.Progress(i*rounds+round, len(inputs)*rounds, "%s, round %d: %s", in.name(), round+1, all[j].name)
				if err := times[j].run(&all[j], a, round); err != nil {
					return fmt.Errorf("%s on %s: %w", all[j].name, in.name(), err)
				}
			}
		}
		limit := log2Choose(a.m, a.x) / 8
		for j, t := range times {
			fse := &times[reference]
			table.Row(in.name(), a.m, a.x, figures(limit, 9), all[j].name, len(t.code), figures(float64(len(t.code))-limit, 6), figures(float64(len(t.code))/limit, 6),
				a.speed(t.encode), a.speed(t.decode), inPairs(fse.encode, t.encode), inPairs(fse.decode, t.decode))
		}
	}
	table.Note("Medians of %d rounds, or of %d for codecs that take over %v. The codecs alternate in each round. MB are those of the array.", rounds, slowRounds, codecSlow)
	table.Note("Mitzenmacher's own check, with mean, deviation and maximum over many trials, is sim trials.")
	table.Note("fse copies a block that it cannot compress. It is fast there, and its speed is no yardstick.")
	return nil
}

// left reports whether a short run skips the input.
func (in codecInput) left(job *Job) bool { return job.Short && in.n > 10_000 }

// exact is the Loose of values that are the same in every run, except that a short run omits
// those of large inputs.
const exact = 1e-6

// speed is in MB of the array a second.
func (a *bitArray) speed(ds []time.Duration) float64 {
	return float64(len(a.bytes)) / 1e6 / median(slices.Clone(ds)).Seconds()
}

// run encodes and decodes once, and checks that the result is the same array.
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
	clear(back.words) // so that the measured part does not touch pages for the first time
	clear(back.bytes)
	start = time.Now()
	err = c.decode(back, t.code)
	t.decode = append(t.decode, time.Since(start))
	if err != nil {
		return err
	}
	if c.inWords && !slices.Equal(back.words, a.words) || !c.inWords && !bytes.Equal(back.bytes, a.bytes) {
		return fmt.Errorf("the decoded array differs from the encoded one")
	}
	return nil
}

// inPairs returns how many times faster b was than a: the median over the rounds that both
// have.
func inPairs(a, b []time.Duration) float64 {
	ratios := make([]float64, min(len(a), len(b)))
	for i := range ratios {
		ratios[i] = a[i].Seconds() / b[i].Seconds()
	}
	return median(ratios)
}
