package exchange

import "encoding/binary"

// MaxHeads is the greatest number of heads in a vector. As many always fit a frame.
const MaxHeads = 16384

// AppendVector appends a frame of type t, [FrameSync] or [FrameVector], with heads, which must be in
// order of Origin. Heads beyond [MaxHeads] are left out.
func AppendVector(dst []byte, t FrameType, heads []Head) []byte {
	start := len(dst)
	heads = heads[:min(len(heads), MaxHeads)]
	dst = binary.AppendUvarint(BeginFrame(dst, t), uint64(len(heads)))
	for _, h := range heads {
		dst = h.append(dst)
	}
	return EndFrame(dst, start)
}

// DecodeVector reads the payload of a sync or vector. b is not retained.
func DecodeVector(b []byte) ([]Head, error) {
	r := newReader("vector", b)
	n := r.Count("count", minHead)
	if n > MaxHeads {
		r.FailAt(0, "count", ErrMalformed)
	}
	if r.Err != nil {
		return nil, r.Err
	}
	heads := make([]Head, 0, n)
	for range n {
		at := r.Off
		h := r.head()
		if r.Err == nil && len(heads) > 0 && h.Origin <= heads[len(heads)-1].Origin {
			r.FailAt(at, "order", ErrMalformed)
		}
		heads = append(heads, h)
	}
	if err := r.End(); err != nil {
		return nil, err
	}
	return heads, nil
}
