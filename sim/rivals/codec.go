package rivals

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/klauspost/compress/fse"
	"github.com/klauspost/compress/huff0"
	"github.com/klauspost/compress/zstd"

	"github.com/summarycache/summarycache/arith"
	"github.com/summarycache/summarycache/sim/lab"
)

var codecExperiment = lab.Experiment{
	Name:    "codec",
	Summary: "our coders beside fse, huff0, zstd, Rice, Elias-Fano and the paper's adaptive coder: bytes against the limit, speed against fse",
	Seconds: 34,
	Flags: func(flags *flag.FlagSet) lab.Runner {
		n, c, shapes := lab.KeysFlag(flags), lab.SharesFlag(flags), lab.ShapesFlag(flags)
		return func(ctx context.Context, job *lab.Job) error {
			return runCodec(ctx, job, lab.Or(lab.OwnInputs(*n, *c, *shapes), codecInputs()))
		}
	},
}

const (
	codecRounds = 7
	// A codec that takes longer than this for one array runs only slowRounds times.
	codecSlow  = 250 * time.Millisecond
	slowRounds = 3
)

// codecInputs are filters and deltas of the geometries in the documents.
func codecInputs() (all []lab.Input) {
	arrays := []lab.Input{{MN: 8, K: 5}, {MN: 12.6, K: 2}, {MN: 14, K: 2}, {MN: 28, K: 4}, {MN: 48, K: 3}, {MN: 92, K: 1}}
	for _, n := range []int{10_000, 1_000_000} {
		for _, s := range arrays {
			s.N = n
			all = append(all, s)
		}
	}
	for _, c := range []float64{0.05, 0.01} {
		for _, s := range []lab.Input{{MN: 8, K: 5}, {MN: 12, K: 3}, {MN: 13, K: 2}, {MN: 16, K: 3}, {MN: 32, K: 2}, {MN: 48, K: 2}, {MN: 92, K: 1}} {
			s.N, s.C = 1_000_000, c
			all = append(all, s)
		}
	}
	return all
}

// draw makes the array, of positions chosen independently and uniformly.
func drawInput(in lab.Input, rng *rand.Rand) *bitArray {
	m := uint64(in.MN * float64(in.N))
	filter := func(keys int) lab.Bitmap {
		words := lab.NewBitmap(m)
		for range keys * in.K {
			words.Set(rng.Uint64N(m))
		}
		return words
	}
	if in.C == 0 {
		return newBitArray(m, filter(in.N))
	}
	replaced := int(in.C * float64(in.N))
	words, gone, come := filter(in.N-replaced), filter(replaced), filter(replaced)
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

func runCodec(ctx context.Context, job *lab.Job, inputs []lab.Input) error {
	rounds := codecRounds
	if job.Short {
		rounds = 1
	}
	all, err := codecs()
	if err != nil {
		return err
	}
	table := job.Table("Filters and exclusive-or deltas by every codec",
		lab.Column{Name: "input"},
		lab.Column{Name: "bits", Loose: lab.Exact},
		lab.Column{Name: "ones", Loose: lab.Exact},
		lab.Column{Name: "limit", Format: "%.1f", Loose: lab.Exact},
		lab.Column{Name: "codec"},
		lab.Column{Name: "bytes", Loose: lab.Exact},
		lab.Column{Name: "over_limit_bytes", Head: "over limit", Format: "%+.1f", Loose: 0.2},
		lab.Column{Name: "ratio", Head: "x limit", Format: "%.5f", Loose: lab.Exact},
		lab.Column{Name: "encode_mb_s", Head: "encode MB/s", Format: "%.0f", Loose: lab.AnyValue},
		lab.Column{Name: "decode_mb_s", Head: "decode MB/s", Format: "%.0f", Loose: lab.AnyValue},
		lab.Column{Name: "encode_x_fse", Head: "encode x fse", Format: "%.2f", Loose: lab.AnyValue},
		lab.Column{Name: "decode_x_fse", Head: "decode x fse", Format: "%.2f", Loose: lab.AnyValue})
	reference := slices.IndexFunc(all, func(c codec) bool { return c.name == "fse" })
	for i, in := range inputs {
		if left(in, job) {
			for _, c := range all {
				table.Skip(in.Name(), nil, nil, nil, c.name)
			}
			continue
		}
		a := drawInput(in, job.Rand(uint64(i)))
		times := make([]codecTimes, len(all))
		for round := range rounds {
			for j := range all {
				if err := ctx.Err(); err != nil {
					return err
				}
				job.Progress(i*rounds+round, len(inputs)*rounds, "%s, round %d: %s", in.Name(), round+1, all[j].name)
				if err := times[j].run(&all[j], a, round); err != nil {
					return fmt.Errorf("%s on %s: %w", all[j].name, in.Name(), err)
				}
			}
		}
		limit := lab.Log2Choose(a.m, a.x) / 8
		for j, t := range times {
			fse := &times[reference]
			table.Row(in.Name(), a.m, a.x, lab.Round(limit, 9), all[j].name, len(t.code), lab.Round(float64(len(t.code))-limit, 6), lab.Round(float64(len(t.code))/limit, 6),
				a.speed(t.encode), a.speed(t.decode), inPairs(fse.encode, t.encode), inPairs(fse.decode, t.decode))
		}
	}
	table.Note("Medians of %d rounds, or of %d for codecs that take over %v. The codecs alternate in each round. MB are those of the array.", rounds, slowRounds, codecSlow)
	table.Note("Mitzenmacher's own check, with mean, deviation and maximum over many trials, is sim trials.")
	table.Note("fse copies a block that it cannot compress. It is fast there, and its speed is no yardstick.")
	return nil
}

// left reports whether a short run skips the input.
func left(in lab.Input, job *lab.Job) bool { return job.Short && in.N > 10_000 }

// speed is in MB of the array a second.
func (a *bitArray) speed(ds []time.Duration) float64 {
	return float64(len(a.bytes)) / 1e6 / lab.Median(slices.Clone(ds)).Seconds()
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
	return lab.Median(ratios)
}

// A bitArray is the input and output of codecs: m bits of which x are one, as words and as the
// same bytes, little-endian.
type bitArray struct {
	m, x  uint64
	words []uint64
	bytes []byte
}

func newBitArray(m uint64, words []uint64) *bitArray {
	a := &bitArray{m: m, words: words, bytes: make([]byte, 0, 8*len(words))}
	for _, w := range words {
		a.x += uint64(bits.OnesCount64(w))
		a.bytes = binary.LittleEndian.AppendUint64(a.bytes, w)
	}
	return a
}

// A codec turns a bit array into bytes and back. encode appends to dst. decode gets an array of
// which only m and x are known. It fills a.words if inWords is set, and a.bytes otherwise.
type codec struct {
	name    string
	inWords bool
	encode  func(dst []byte, a *bitArray) ([]byte, error)
	decode  func(a *bitArray, code []byte) error
}

func codecs() ([]codec, error) {
	zstd, err := zstdCodec()
	return []codec{
		ours("adaptive", func(uint64, uint64) arith.Method { return arith.Adaptive }),
		ours("block", func(uint64, uint64) arith.Method { return arith.Block }),
		ours("automatic", arith.Choose),
		fseCodec(),
		zstd,
		huff0Codec(),
		{name: "two counts", inWords: true, encode: encodeTwoCounts, decode: decodeTwoCounts},
		gapCodec("rice", false),
		gapCodec("elias-fano", true),
	}, err
}

func ours(name string, method func(m, x uint64) arith.Method) codec {
	return codec{
		name: name, inWords: true,
		encode: func(dst []byte, a *bitArray) ([]byte, error) {
			return arith.AppendBitmap(dst, method(a.m, a.x), a.m, a.words), nil
		},
		decode: func(a *bitArray, code []byte) error {
			return arith.DecodeBitmap(a.words, method(a.m, a.x), code, a.m, a.x)
		},
	}
}

// byteCodec codes bytes in blocks: a length, in four bytes, and the code. The highest bit of the length
// marks a block that is not compressed.
func byteCodec(name string, size int, compress func([]byte) ([]byte, error), decompress func(code []byte, n int) ([]byte, error)) codec {
	const plain = 1 << 31
	return codec{
		name: name,
		encode: func(dst []byte, a *bitArray) ([]byte, error) {
			for block := range slices.Chunk(a.bytes, size) {
				code, err := compress(block)
				if err != nil { // not compressible, or one symbol repeated
					dst = append(binary.LittleEndian.AppendUint32(dst, uint32(len(block))|plain), block...)
					continue
				}
				dst = append(binary.LittleEndian.AppendUint32(dst, uint32(len(code))), code...)
			}
			return dst, nil
		},
		decode: func(a *bitArray, code []byte) error {
			for block := range slices.Chunk(a.bytes, size) {
				n := binary.LittleEndian.Uint32(code)
				body := code[4:][:n&^plain]
				code = code[4+len(body):]
				if n&plain == 0 {
					var err error
					if body, err = decompress(body, len(block)); err != nil {
						return err
					}
				}
				copy(block, body)
			}
			return nil
		},
	}
}

func fseCodec() codec {
	var enc, dec fse.Scratch
	return byteCodec("fse", 1<<20, func(block []byte) ([]byte, error) { return fse.Compress(block, &enc) },
		func(code []byte, n int) ([]byte, error) {
			dec.DecompressLimit = n
			return fse.Decompress(code, &dec)
		})
}

// huff0Codec has a Huffman code for each block of 128 KiB.
func huff0Codec() codec {
	enc, dec := huff0.Scratch{Reuse: huff0.ReusePolicyNone}, huff0.Scratch{}
	return byteCodec("huff0", huff0.BlockSizeMax, func(block []byte) ([]byte, error) {
		code, _, err := huff0.Compress1X(block, &enc)
		return code, err
	}, func(code []byte, n int) ([]byte, error) {
		table, rest, err := huff0.ReadTable(code, &dec)
		if err != nil {
			return nil, err
		}
		return table.Decoder().Decompress1X(make([]byte, 0, n), rest)
	})
}

// twoCounts is the coder of the appendix of Compressed Bloom Filters: adaptive, bit by bit, with counts
// of zeros and of ones that start at 1. bit codes bit i with the odds of a one, and returns it.
func twoCounts(m uint64, bit func(i, odds uint64) bool) {
	ones := 1.0
	for i := range m {
		if bit(i, lab.Odds(ones/float64(i+2))) {
			ones++
		}
	}
}

func encodeTwoCounts(dst []byte, a *bitArray) ([]byte, error) {
	e := lab.NewBitEncoder()
	twoCounts(a.m, func(i, odds uint64) bool {
		one := a.words[i/64]>>(i%64)&1 == 1
		e.Encode(one, odds)
		return one
	})
	return append(dst, e.Finish()...), nil
}

func decodeTwoCounts(a *bitArray, code []byte) error {
	d := lab.NewBitDecoder(code)
	clear(a.words)
	twoCounts(a.m, func(i, odds uint64) bool {
		one := d.Decode(odds)
		if one {
			a.words[i/64] |= 1 << (i % 64)
		}
		return one
	})
	return nil
}

func zstdCodec() (codec, error) {
	enc, err1 := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	dec, err2 := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	return codec{
		name:   "zstd-default",
		encode: func(dst []byte, a *bitArray) ([]byte, error) { return enc.EncodeAll(a.bytes, dst), nil },
		decode: func(a *bitArray, code []byte) error {
			_, err := dec.DecodeAll(code, a.bytes[:0])
			return err
		},
	}, errors.Join(err1, err2)
}

// riceShift is the parameter of a Rice code for gaps of mean m/x: so many low bits are written
// plainly, the rest in unary.
func riceShift(m, x uint64) uint {
	return uint(max(bits.Len64(m*45/64/max(x, 1)), 1)) - 1 // about log2(0.69·m/x)
}

// gapCodec writes the low bits of each position plainly and the rest in unary: those of the gap before
// it, which is a Rice code, or those of the position, which is the code of Elias and Fano.
func gapCodec(name string, positions bool) codec {
	return codec{
		name: name, inWords: true,
		encode: func(dst []byte, a *bitArray) ([]byte, error) { return encodeGaps(dst, a, positions) },
		decode: func(a *bitArray, code []byte) error { return decodeGaps(a, code, positions) },
	}
}

func encodeGaps(dst []byte, a *bitArray, positions bool) ([]byte, error) {
	shift := riceShift(a.m, a.x)
	var hold uint64
	var fill uint
	put := func(v uint64, n uint) { // n <= 32
		hold |= v << fill
		for fill += n; fill >= 8; fill -= 8 {
			dst = append(dst, byte(hold))
			hold >>= 8
		}
	}
	next := uint64(0)
	for i, w := range a.words {
		for ; w != 0; w &= w - 1 {
			p := uint64(i*64 + bits.TrailingZeros64(w))
			gap := p - next
			if next = p + 1; positions {
				next = p &^ (1<<shift - 1)
			}
			high := gap >> shift
			for ; high >= 32; high -= 32 {
				put(0, 32)
			}
			put(1<<high, uint(high)+1)
			put(gap&(1<<shift-1), shift)
		}
	}
	if fill > 0 {
		dst = append(dst, byte(hold))
	}
	return dst, nil
}

func decodeGaps(a *bitArray, code []byte, positions bool) error {
	shift := riceShift(a.m, a.x)
	var hold uint64
	var fill uint
	refill := func() {
		for fill <= 56 && len(code) > 0 {
			hold |= uint64(code[0]) << fill
			code = code[1:]
			fill += 8
		}
	}
	clear(a.words)
	next := uint64(0)
	for range a.x {
		high := uint64(0)
		for refill(); hold == 0; refill() {
			if fill == 0 {
				return fmt.Errorf("the code ends early")
			}
			high += uint64(fill)
			fill = 0
		}
		zeros := uint(bits.TrailingZeros64(hold))
		high += uint64(zeros)
		hold >>= zeros + 1
		fill -= zeros + 1
		refill()
		p := next + high<<shift + hold&(1<<shift-1)
		hold >>= shift
		fill -= shift
		if p >= a.m {
			return fmt.Errorf("position %d of %d", p, a.m)
		}
		a.words[p>>6] |= 1 << (p & 63)
		if next = p + 1; positions {
			next = p &^ (1<<shift - 1)
		}
	}
	return nil
}
