package store

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
	body := make([]byte, 3*blockSize+blockSize/2)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range body {
		body[i] = byte(r.Uint32())
	}
	s := Sums{body: int64(len(body))}
	for from := 0; from < len(body); from += blockSize {
		s.sums = append(s.sums, xxhash.Sum64(body[from:min(from+blockSize, len(body))]))
	}
	for _, part := range [][2]int{{0, len(body)}, {10, len(body)}, {10, 20}, {10, blockSize + 20}, {0, 2 * blockSize}, {blockSize, 2*blockSize + 1},
		{blockSize - 1, len(body) - 1}, {3*blockSize + 5, len(body)}, {3 * blockSize, len(body)}, {3 * blockSize, len(body) - 1}} {
		from, to := part[0], part[1]
		got, err := io.ReadAll(s.Check(bytes.NewReader(body[from:to]), int64(from), int64(to)))
		if err != nil || !bytes.Equal(got, body[from:to]) {
			t.Errorf("%d to %d: %d bytes, %v", from, to, len(got), err)
		}
		for block := range s.sums {
			first, last := block*blockSize, min((block+1)*blockSize, len(body))
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
