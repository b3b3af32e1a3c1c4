package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/klauspost/compress/fse"
	"github.com/klauspost/compress/zstd"

	"github.com/summarycache/summarycache/arith"
)

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
		{name: "rice", inWords: true, encode: encodeRice, decode: decodeRice},
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

// fseCodec codes bytes in blocks: a length, in four bytes, and the code. The highest bit of the
// length marks a block that is not compressed.
func fseCodec() codec {
	const size, plain = 1 << 20, 1 << 31
	var enc, dec fse.Scratch
	return codec{
		name: "fse",
		encode: func(dst []byte, a *bitArray) ([]byte, error) {
			for block := range slices.Chunk(a.bytes, size) {
				code, err := fse.Compress(block, &enc)
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
					dec.DecompressLimit = len(block)
					var err error
					if body, err = fse.Decompress(body, &dec); err != nil {
						return err
					}
				}
				copy(block, body)
			}
			return nil
		},
	}
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

func encodeRice(dst []byte, a *bitArray) ([]byte, error) {
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
			next = p + 1
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

func decodeRice(a *bitArray, code []byte) error {
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
				return fmt.Errorf("rice: code ends early")
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
			return fmt.Errorf("rice: position %d of %d", p, a.m)
		}
		a.words[p>>6] |= 1 << (p & 63)
		next = p + 1
	}
	return nil
}
