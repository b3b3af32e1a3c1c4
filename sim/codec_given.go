package main

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/summarycache/summarycache/arith"
)

// codecGiven codes deltas for a reader who holds the old filter. The limit is
// then the logarithm of the number of ways in which so many of its zeros and so
// many of its ones may change.
func codecGiven(ctx context.Context, job *Job, inputs []codecInput, rounds int) error {
	table := job.Table("Deltas given the old filter",
		Column{Name: "input"},
		Column{Name: "flips_to_one", Head: "to one", Loose: exact},
		Column{Name: "flips_to_zero", Head: "to zero", Loose: exact},
		Column{Name: "limit_alone", Head: "limit without it", Format: "%.1f", Loose: exact},
		Column{Name: "limit", Format: "%.1f", Loose: exact},
		Column{Name: "bytes", Loose: exact},
		Column{Name: "over_limit_bytes", Head: "over limit", Format: "%+.1f", Loose: 0.2},
		Column{Name: "ratio", Head: "x limit", Format: "%.5f", Loose: exact},
		Column{Name: "encode_mb_s", Head: "encode MB/s", Format: "%.0f", Loose: AnyValue},
		Column{Name: "decode_mb_s", Head: "decode MB/s", Format: "%.0f", Loose: AnyValue})
	for i, in := range inputs {
		if in.c == 0 {
			continue
		}
		if in.left(job) {
			table.Row(in.name(), nil, nil, nil, nil, nil, nil, nil, nil, nil)
			continue
		}
		a, old := in.draw(job.Rand(uint64(i)))
		m1, x1 := uint64(countOnes(old)), uint64(0)
		for j, w := range old {
			x1 += uint64(bits.OnesCount64(w & a.words[j]))
		}
		x0 := a.x - x1
		limit := (log2Choose(a.m-m1, x0) + log2Choose(m1, x1)) / 8
		var code []byte
		var encode, decode []time.Duration
		back := make([]uint64, len(a.words))
		for round := range rounds {
			if err := ctx.Err(); err != nil {
				return err
			}
			job.Progress(i*rounds+round, len(inputs)*rounds, "%s given the old filter, round %d", in.name(), round+1)
			start := time.Now()
			code = arith.AppendBitmapGiven(code[:0], a.m, a.words, old)
			encode = append(encode, time.Since(start))
			start = time.Now()
			err := arith.DecodeBitmapGiven(back, code, a.m, x0, x1, old)
			decode = append(decode, time.Since(start))
			if err != nil || !slices.Equal(back, a.words) {
				return fmt.Errorf("%s given the old filter: what was decoded is not what was encoded: %w", in.name(), err)
			}
		}
		table.Row(in.name(), x0, x1, figures(log2Choose(a.m, a.x)/8, 9), figures(limit, 9), len(code), figures(float64(len(code))-limit, 6), figures(float64(len(code))/limit, 6),
			a.speed(encode), a.speed(decode))
	}
	table.Note("Medians of %d rounds. The limit is the logarithm of the number of ways in which so many zeros and so many ones of the old filter may change.", rounds)
	return nil
}

// codecWorkers compares two workers with one.
func codecWorkers(ctx context.Context, job *Job, inputs []codecInput, rounds int) error {
	table := job.Table("Two workers beside one",
		Column{Name: "input"},
		Column{Name: "bytes", Loose: exact},
		Column{Name: "encode_x_one", Head: "encode x one", Format: "%.2f", Loose: AnyValue},
		Column{Name: "decode_x_one", Head: "decode x one", Format: "%.2f", Loose: AnyValue})
	for i, in := range inputs {
		if in.n < 1_000_000 || in.c > 0 {
			continue
		}
		if in.left(job) {
			table.Row(in.name(), nil, nil, nil)
			continue
		}
		a, _ := in.draw(job.Rand(uint64(i)))
		var code []byte
		var encode, decode [2][]time.Duration
		back := make([]uint64, len(a.words))
		for round := range rounds {
			if err := ctx.Err(); err != nil {
				return err
			}
			job.Progress(i*rounds+round, len(inputs)*rounds, "%s by one and two workers, round %d", in.name(), round+1)
			for j := range 2 {
				workers := arith.Workers(j + 1)
				start := time.Now()
				code = workers.AppendBitmap(code[:0], arith.Block, a.m, a.words)
				encode[j] = append(encode[j], time.Since(start))
				start = time.Now()
				err := workers.DecodeBitmap(back, arith.Block, code, a.m, a.x)
				decode[j] = append(decode[j], time.Since(start))
				if err != nil || !slices.Equal(back, a.words) {
					return fmt.Errorf("%s by %d workers: what was decoded is not what was encoded: %w", in.name(), workers, err)
				}
			}
		}
		table.Row(in.name(), len(code), inPairs(encode[0], encode[1]), inPairs(decode[0], decode[1]))
	}
	table.Note("Medians of %d rounds, one and two workers by turns. Two need two cores.", rounds)
	table.Note("Mitzenmacher's own check, mean, deviation and maximum over many trials, is sim trials.")
	return nil
}
