package rivals

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/sim/cputime"
	"github.com/summarycache/summarycache/sim/lab"
)

var piecesExperiment = lab.Experiment{
	Name:    "pieces",
	Summary: "bytes read and CPU time of a lookup in a digest on a server, by the length of the digest's pieces",
	Seconds: 8,
	Flags: func(flags *flag.FlagSet) lab.Runner {
		n, f := lab.KeysFlag(flags, 10_000, 100_000, 1_000_000, 10_000_000), lab.RatesFlag(flags, 1e-3)
		return func(ctx context.Context, job *lab.Job) error {
			return lab.ForEach(*f, func(f float64) error { return piecesAt(ctx, job, *n, f) })
		}
	},
}

func piecesAt(ctx context.Context, job *lab.Job, sizes []int, rate float64) error {
	const lookups = 2000
	lengths := []int{512, 1 << 10, 2 << 10, 3 << 10, 4 << 10, 8 << 10, 32 << 10}
	table := job.Table(fmt.Sprintf("first lookups in a digest in pieces: f = %g, one hash", rate),
		lab.Column{Name: "keys", Head: "n"},
		lab.Column{Name: "piece", Head: "bytes a piece"},
		lab.Column{Name: "pieces", Loose: lab.Exact},
		lab.Column{Name: "bytes", Loose: lab.Exact},
		lab.Column{Name: "over", Head: "over the plain digest, %", Format: "%+.2f", Loose: lab.Exact},
		lab.Column{Name: "index_reads", Head: "reads for the index", Loose: lab.Exact},
		lab.Column{Name: "index_bytes", Head: "bytes for the index", Loose: lab.Exact},
		lab.Column{Name: "mean", Head: "bytes for a piece, mean", Format: "%.0f", Loose: lab.Exact},
		lab.Column{Name: "first", Head: "first lookup, bytes at most", Loose: lab.Exact},
		lab.Column{Name: "cpu_us", Head: "first lookup, CPU µs", Format: "%.0f", Loose: lab.AnyValue})
	for at, n := range sizes {
		if job.Short && n > 10_000 {
			for _, length := range lengths {
				table.Skip(n, length)
			}
			continue
		}
		_, keys, f, err := lab.Filled(digest.Geometry{Bits: uint64(float64(n) / rate), Hashes: 1}, job.Rand(uint64(n)), n)
		if err != nil {
			return err
		}
		plain := len(f.AppendTo(nil))
		keys = keys[:min(lookups, n)]
		each := float64(len(keys))
		for i, length := range lengths {
			if err := ctx.Err(); err != nil {
				return err
			}
			job.Progress(at*len(lengths)+i, len(sizes)*len(lengths), "n = %d, pieces of %d bytes", n, length)
			b := f.AppendPieces(nil, length)
			c, err := firstLookups(b, keys)
			if err != nil {
				return err
			}
			table.Row(n, length, c.pieces, len(b), 100*(float64(len(b))/float64(plain)-1),
				c.index.reads, c.index.bytes, float64(c.sum)/each, c.index.bytes+c.longest, float64(c.cpu.Microseconds())/each)
		}
	}
	table.Note("%d keys of the digest, each in a first lookup: it reads the index, in one read of 4,096 bytes and, if it is longer, another of the rest, and then one piece. Later lookups read a piece each. Times depend on the machine.", lookups)
	return nil
}

// A countingReader counts the reads of a digest.
type countingReader struct {
	*bytes.Reader
	reads, bytes int
}

func (r *countingReader) ReadAt(b []byte, at int64) (int, error) {
	n, err := r.Reader.ReadAt(b, at)
	r.reads++
	r.bytes += n
	return n, err
}

type pieceCost struct {
	pieces       int
	index        countingReader // as it was when the index had been read
	sum, longest int            // bytes of the pieces that were read
	cpu          time.Duration
}

// firstLookups opens a digest in pieces for each key and looks the key up.
func firstLookups(b []byte, keys []digest.Key) (c pieceCost, err error) {
	begin := cputime.Used()
	for _, k := range keys {
		r := &countingReader{Reader: bytes.NewReader(b)}
		f, err := digest.OpenFilter(r, digest.Limits{})
		if err != nil {
			return c, err
		}
		c.pieces, c.index = f.Pieces(), *r
		if found, err := f.MayContain(k); err != nil || !found {
			return c, fmt.Errorf("a key that was added: found %t, error %v", found, err)
		}
		read := r.bytes - c.index.bytes
		c.sum, c.longest = c.sum+read, max(c.longest, read)
	}
	c.cpu = cputime.Used() - begin
	return c, nil
}
