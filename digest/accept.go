package digest

import (
	"fmt"

	"github.com/summarycache/summarycache/digest/bloom"
)

// Accept reports whether a receiver with these limits would take a filter of geometry g with so
// many positions set. It returns nil, or an error that wraps [ErrTooLarge] and says which limit
// is exceeded. The message's length is estimated, to within a thousandth. Publishers should
// call it first: a filter that every receiver refuses is useless.
func (l Limits) Accept(g Geometry, ones uint64) error {
	l = l.withDefaults()
	form := formFor(g.Bits, ones)
	message := float64(g.Bits)*bloom.Entropy(float64(ones)/float64(g.Bits))/8*1.001 + 36 // with its header
	switch memory := decodingBytes(&form, ones); {
	case g.Bits > l.Bits:
		return fmt.Errorf("digest: a filter of %d bits: %w: %d bits", g.Bits, ErrTooLarge, l.Bits)
	case message > float64(l.Bytes):
		return fmt.Errorf("digest: a filter of %d positions: %w: its message takes %.0f bytes, %d allowed", ones, ErrTooLarge, message, l.Bytes)
	case memory > uint64(l.Memory):
		return fmt.Errorf("digest: a filter of %d positions: %w: to read it takes %d bytes, %d allowed", ones, ErrTooLarge, memory, l.Memory)
	case !form.bitmap && ones > maxPieced:
		return fmt.Errorf("digest: a filter of %d positions: %w: %d positions", ones, ErrTooLarge, maxPieced)
	}
	return nil
}
