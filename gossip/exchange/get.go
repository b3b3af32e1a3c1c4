package exchange

import (
	"encoding/binary"
	"time"
)

// Get asks for the newest version of an origin's digest.
type Get struct {
	Origin ID
	Have   Version // held already; zero if none
	State  uint64  // of Have
	Whole  bool    // no delta, whatever is held; excludes Have
	Limit  uint64  // greatest payload accepted, in bytes
}

const (
	getHave  = 1
	getWhole = 2
	minLimit = 64
)

// AppendTo appends the frame to dst.
func (g Get) AppendTo(dst []byte) []byte {
	start := len(dst)
	var flags byte
	if g.Whole {
		flags = getWhole
	} else if !g.Have.IsZero() {
		flags = getHave
	}
	dst = append(BeginFrame(dst, FrameGet), flags)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(g.Origin))
	dst = binary.AppendUvarint(dst, max(g.Limit, minLimit))
	if flags&getHave != 0 {
		dst = binary.LittleEndian.AppendUint64(dst, g.Have.Incarnation)
		dst = binary.AppendUvarint(dst, g.Have.Epoch)
		dst = binary.AppendUvarint(dst, g.Have.Sequence)
		dst = binary.LittleEndian.AppendUint64(dst, g.State)
	}
	return EndFrame(dst, start)
}

// DecodeGet reads the payload of a get. b is not retained.
func DecodeGet(b []byte) (Get, error) {
	r := reader{message: "get", b: b}
	flags := r.byte("flags")
	if flags > getWhole {
		r.off = 0
		r.fail("flags")
	}
	g := Get{Whole: flags == getWhole, Origin: ID(r.uint64("origin"))}
	if g.Limit = r.uvarint("limit"); g.Limit < minLimit {
		r.fail("limit")
	}
	if flags == getHave {
		if g.Have.Incarnation = r.uint64("incarnation"); g.Have.Incarnation == 0 {
			r.fail("incarnation")
		}
		g.Have.Epoch = r.uvarint("epoch")
		g.Have.Sequence = r.uvarint("sequence")
		g.State = r.uint64("state")
	}
	if err := r.end(); err != nil {
		return Get{}, err
	}
	return g, nil
}

// maxRetry bounds the wait that a busy answer can ask for.
const maxRetry = 10 * time.Minute

func appendBusy(dst []byte, wait time.Duration) []byte {
	start := len(dst)
	ms := max(1, min(wait, maxRetry).Milliseconds())
	dst = binary.AppendUvarint(BeginFrame(dst, FrameBusy), uint64(ms))
	return EndFrame(dst, start)
}

func decodeBusy(b []byte) (time.Duration, error) {
	r := reader{message: "busy", b: b}
	ms := r.uvarint("milliseconds")
	if r.err == nil && (ms < 1 || ms > uint64(maxRetry.Milliseconds())) {
		r.off = 0
		r.fail("milliseconds")
	}
	return time.Duration(ms) * time.Millisecond, r.end()
}
