package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/sim/cputime"
)

var _ = experiments.add(Experiment{
	Name:    "pieces",
	Summary: "bytes read and CPU time to look up one key in a digest on a server, by the length of its pieces",
	Seconds: 8,
	Flags: func(flags *flag.FlagSet) runner {
		n, f := keysFlag(flags, 10_000, 100_000, 1_000_000, 10_000_000), ratesFlag(flags, 1e-3)
		return func(ctx context.Context, job *Job) error {
			return forEach(*f, func(f float64) error { return piecesAt(ctx, job, *n, f) })
		}
	},
})

var pieceLengths = []int{512, 1 << 10, 2 << 10, 3 << 10, 4 << 10, 8 << 10, 32 << 10}

const pieceLookups = 2000

func piecesAt(ctx context.Context, job *Job, sizes []int, rate float64) error {
	table := job.Table(fmt.Sprintf("one key of a digest in pieces: f = %g, one hash", rate),
		Column{Name: "keys", Head: "n"},
		Column{Name: "piece", Head: "bytes a piece"},
		Column{Name: "pieces", Loose: exact},
		Column{Name: "bytes", Loose: exact},
		Column{Name: "over", Head: "over the plain digest, %", Format: "%+.2f", Loose: exact},
		Column{Name: "index_reads", Head: "reads for the index", Loose: exact},
		Column{Name: "index_bytes", Head: "bytes for the index", Loose: exact},
		Column{Name: "mean", Head: "bytes for a piece, mean", Format: "%.0f", Loose: exact},
		Column{Name: "first", Head: "first lookup, bytes at most", Loose: exact},
		Column{Name: "cpu_us", Head: "first lookup, CPU µs", Format: "%.0f", Loose: AnyValue})
	for at, n := range sizes {
		if job.Short && n > 10_000 {
			for _, length := range pieceLengths {
				table.skip(n, length)
			}
			continue
		}
		_, keys, f, err := filled(digest.Geometry{Bits: uint64(float64(n) / rate), Hashes: 1}, job.Rand(uint64(n)), n)
		if err != nil {
			return err
		}
		plain := len(f.AppendTo(nil))
		for i, length := range pieceLengths {
			if err := ctx.Err(); err != nil {
				return err
			}
			job.Progress(at*len(pieceLengths)+i, len(sizes)*len(pieceLengths), "n = %d, pieces of %d bytes", n, length)
			b := f.AppendPieces(nil, length)
			r, err := askPieces(b, keys[:min(pieceLookups, n)])
			if err != nil {
				return err
			}
			each := float64(min(pieceLookups, n))
			table.Row(n, length, r.pieces, len(b), 100*(float64(len(b))/float64(plain)-1),
				r.index.reads, r.index.bytes, float64(r.all)/each, r.index.bytes+r.longest, float64(r.cpu.Microseconds())/each)
		}
	}
	table.Note("%d keys of the digest, each in a first lookup: it reads the index, in one read of 4,096 bytes and, if it is longer, another of the rest, and then one piece. Later lookups read a piece each. Times depend on the machine.", pieceLookups)
	return nil
}

// reads counts the reads of a digest.
type reads struct {
	*bytes.Reader
	reads, bytes int
}

func (r *reads) ReadAt(b []byte, at int64) (int, error) {
	n, err := r.Reader.ReadAt(b, at)
	r.reads++
	r.bytes += n
	return n, err
}

type pieceCost struct {
	pieces       int
	index        reads
	all, longest int // bytes of pieces that were read
	cpu          time.Duration
}

func askPieces(b []byte, keys []digest.Key) (c pieceCost, err error) {
	begin := cputime.Used()
	for _, k := range keys {
		c.index = reads{Reader: bytes.NewReader(b)}
		r := &c.index
		f, err := digest.OpenFilter(r, digest.Limits{})
		if err != nil {
			return c, err
		}
		c.pieces = f.Pieces()
		index := *r
		if yes, err := f.MayContain(k); err != nil || !yes {
			return c, fmt.Errorf("a key that is there: %v, %w", yes, err)
		}
		read := r.bytes - index.bytes
		c.all += read
		c.longest = max(c.longest, read)
		c.index = index
	}
	c.cpu = cputime.Used() - begin
	return c, nil
}
