package exchange

import (
	"encoding/binary"
	"time"
)

// Get requests the newest version of an origin's digest.
type Get struct {
	Origin ID
	Have   Version // held by the client; zero if none
	State  uint64  // of Have
	Whole  bool    // the answer must be a snapshot; excludes Have
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
	if flags == getHave {
		dst = g.Have.append(dst, g.State)
	}
	return EndFrame(dst, start)
}

func (v Version) append(dst []byte, state uint64) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, v.Incarnation)
	dst = binary.AppendUvarint(dst, v.Epoch)
	dst = binary.AppendUvarint(dst, v.Sequence)
	return binary.LittleEndian.AppendUint64(dst, state)
}

func (r *reader) version() (v Version, state uint64) {
	v.Incarnation = r.NonZero("incarnation")
	v.Epoch = r.Uvarint("epoch")
	v.Sequence = r.Uvarint("sequence")
	return v, r.Uint64("state")
}

// DecodeGet reads the payload of a get. b is not retained.
func DecodeGet(b []byte) (Get, error) {
	r := newReader("get", b)
	flags := r.Byte("flags")
	if flags > getWhole {
		r.FailAt(0, "flags", ErrMalformed)
	}
	g := Get{Whole: flags == getWhole, Origin: ID(r.Uint64("origin"))}
	if g.Limit = r.Uvarint("limit"); g.Limit < minLimit {
		r.Fail("limit")
	}
	if flags == getHave {
		g.Have, g.State = r.version()
	}
	if err := r.End(); err != nil {
		return Get{}, err
	}
	return g, nil
}

// maxRetry bounds the wait in a busy answer.
const maxRetry = 10 * time.Minute

func appendBusy(dst []byte, wait time.Duration) []byte {
	start := len(dst)
	ms := max(1, min(wait, maxRetry).Milliseconds())
	dst = binary.AppendUvarint(BeginFrame(dst, FrameBusy), uint64(ms))
	return EndFrame(dst, start)
}

func decodeBusy(b []byte) (time.Duration, error) {
	r := newReader("busy", b)
	ms := r.Uvarint("milliseconds")
	if r.Err == nil && (ms < 1 || ms > uint64(maxRetry.Milliseconds())) {
		r.FailAt(0, "milliseconds", ErrMalformed)
	}
	return time.Duration(ms) * time.Millisecond, r.End()
}
