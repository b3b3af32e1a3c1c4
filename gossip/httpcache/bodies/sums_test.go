package bodies

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// TestCheckOfAPart: only the blocks that are completely within a part are checked.
func TestCheckOfAPart(t *testing.T) {
	body := make([]byte, 3*BlockSize+BlockSize/2)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range body {
		body[i] = byte(r.Uint32())
	}
	s := Sums{Size: int64(len(body))}
	for from := 0; from < len(body); from += BlockSize {
		s.Blocks = append(s.Blocks, xxhash.Sum64(body[from:min(from+BlockSize, len(body))]))
	}
	for _, part := range [][2]int{{0, len(body)}, {10, len(body)}, {10, 20}, {10, BlockSize + 20}, {0, 2 * BlockSize}, {BlockSize, 2*BlockSize + 1},
		{BlockSize - 1, len(body) - 1}, {3*BlockSize + 5, len(body)}, {3 * BlockSize, len(body)}, {3 * BlockSize, len(body) - 1}} {
		from, to := part[0], part[1]
		got, err := io.ReadAll(s.Check(bytes.NewReader(body[from:to]), int64(from), int64(to)))
		if err != nil || !bytes.Equal(got, body[from:to]) {
			t.Errorf("%d to %d: %d bytes, %v", from, to, len(got), err)
		}
		for block := range s.Blocks {
			first, last := block*BlockSize, min((block+1)*BlockSize, len(body))
			at := max(first, from)
			if at >= min(last, to) {
				continue
			}
			spoilt := bytes.Clone(body)
			spoilt[at]++
			got, err := io.ReadAll(s.Check(bytes.NewReader(spoilt[from:to]), int64(from), int64(to)))
			switch whole := from <= first && last <= to; {
			case whole && (!errors.Is(err, ErrDiffers) || !bytes.Equal(got, body[from:first])):
				t.Errorf("%d to %d, spoilt in block %d: %d bytes, %v", from, to, block, len(got), err)
			case !whole && err != nil:
				t.Errorf("%d to %d, spoilt in a part of block %d: %v", from, to, block, err)
			}
		}
	}
}

// TestSumsOf: as many sums as the body has blocks are decoded, and no other number of bytes.
func TestSumsOf(t *testing.T) {
	for _, body := range []int64{-1, 0, 1, BlockSize - 1, BlockSize, BlockSize + 1, 2*BlockSize + 1} {
		for n := range 33 {
			blocks := (body + BlockSize - 1) / BlockSize
			s, ok := SumsOf(make([]byte, n), body)
			if want := body >= 0 && int64(n) == 8*blocks; ok != want || ok && (s.Size != body || int64(s.Len()) != blocks || len(s.Append(nil)) != n) {
				t.Errorf("SumsOf(%d bytes, %d) = %v, %v, want %v", n, body, s, ok, want)
			}
		}
	}
}
