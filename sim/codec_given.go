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
func codecGiven(ctx context.Context, job *Job, rounds int) error {
	table := job.Table("Deltas given the old filter",
		Column{Name: "input"},
		Column{Name: "flips_to_one", Head: "to one"},
		Column{Name: "flips_to_zero", Head: "to zero"},
		Column{Name: "limit_alone", Head: "limit without it", Format: "%.1f"},
		Column{Name: "limit", Format: "%.1f"},
		Column{Name: "bytes"},
		Column{Name: "over_limit_bytes", Head: "over limit", Format: "%+.1f"},
		Column{Name: "ratio", Head: "x limit", Format: "%.5f"},
		Column{Name: "encode_mb_s", Head: "encode MB/s", Format: "%.0f", Loose: AnyValue},
		Column{Name: "decode_mb_s", Head: "decode MB/s", Format: "%.0f", Loose: AnyValue})
	for i, in := range codecInputs(false) {
		if in.c == 0 {
			continue
		}
		if job.Short {
			in.n = 10_000
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
			job.Progress("%s given the old filter, round %d", in.name(), round+1)
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
		mb := float64(len(a.bytes)) / 1e6
		table.Row(in.name(), x0, x1, log2Choose(a.m, a.x)/8, limit, len(code), float64(len(code))-limit, float64(len(code))/limit,
			mb/middle(encode).Seconds(), mb/middle(decode).Seconds())
	}
	table.Note("medians of %d rounds", rounds)
	return nil
}

// codecWorkers compares two workers with one.
func codecWorkers(ctx context.Context, job *Job, rounds int) error {
	table := job.Table("Two workers beside one",
		Column{Name: "input"},
		Column{Name: "bytes"},
		Column{Name: "encode_x_one", Head: "encode x one", Format: "%.2f", Loose: AnyValue},
		Column{Name: "decode_x_one", Head: "decode x one", Format: "%.2f", Loose: AnyValue})
	for i, in := range codecInputs(false) {
		if in.n < 1_000_000 || in.c > 0 {
			continue
		}
		if job.Short {
			in.n = 100_000
		}
		a, _ := in.draw(job.Rand(uint64(i)))
		var code []byte
		var encode, decode [2][]time.Duration
		back := make([]uint64, len(a.words))
		for round := range rounds {
			if err := ctx.Err(); err != nil {
				return err
			}
			job.Progress("%s by one and two workers, round %d", in.name(), round+1)
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
	table.Note("medians of %d rounds, one and two workers by turns; two workers need two cores", rounds)
	table.Note("The paper's own check, over many trials of small filters, is sim trials.")
	return nil
}
