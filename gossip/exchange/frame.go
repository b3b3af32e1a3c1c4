package exchange

import (
	"encoding/binary"
	"fmt"
)

// First bytes of a stream of this protocol.
const (
	StreamMagic0 = 0x53
	StreamMagic1 = 0x43
)

// FrameType is the first byte of a frame.
type FrameType uint8

const (
	FrameHello    FrameType = 1
	FrameWelcome  FrameType = 2
	FrameRefuse   FrameType = 3
	FrameGet      FrameType = 4
	FrameSnapshot FrameType = 5
	FrameDelta    FrameType = 6
	FrameSame     FrameType = 7
	FrameBusy     FrameType = 8
	FrameUnknown  FrameType = 9
	FrameSync     FrameType = 10
	FrameVector   FrameType = 11
	FrameRest     FrameType = 12

	// Of package invalidation.
	FrameRecall FrameType = 32
	FrameLogs   FrameType = 33
)

var frameNames = [...]string{
	"", "hello", "welcome", "refuse", "get", "snapshot", "delta", "same", "busy", "unknown", "sync", "vector", "rest",
}

func (t FrameType) String() string {
	switch {
	case t >= 1 && int(t) < len(frameNames):
		return frameNames[t]
	case t == FrameRecall:
		return "recall"
	case t == FrameLogs:
		return "logs"
	}
	return fmt.Sprintf("frame type %d", uint8(t))
}

// Greatest payloads in bytes, by type.
const (
	maxGreeting = 256
	maxGet      = 128
	maxSame     = 128
	maxBusy     = binary.MaxVarintLen64
	maxVector   = 1 << 20
)

// MaxPayload returns the greatest payload a frame of type t may have, in bytes,
// where limit is the greatest body the reader accepts.
func (t FrameType) MaxPayload(limit int) (int, bool) {
	switch t {
	case FrameHello, FrameWelcome, FrameRefuse:
		return maxGreeting, true
	case FrameGet:
		return maxGet, true
	case FrameSnapshot, FrameDelta, FrameRest:
		return limit, true
	case FrameSame:
		return maxSame, true
	case FrameBusy:
		return maxBusy, true
	case FrameUnknown:
		return 0, true
	case FrameSync, FrameVector, FrameRecall, FrameLogs:
		return maxVector, true
	}
	return 0, false
}

// FrameHeader is the length in bytes of what precedes a payload.
const FrameHeader = 5

// BeginFrame appends the header of a frame whose payload is yet to be appended;
// finish with [EndFrame].
func BeginFrame(dst []byte, t FrameType) []byte {
	return append(dst, byte(t), 0, 0, 0, 0)
}

// EndFrame sets the length of the frame that begins at start.
func EndFrame(dst []byte, start int) []byte {
	binary.LittleEndian.PutUint32(dst[start+1:], uint32(len(dst)-start-FrameHeader))
	return dst
}

// DecodeFrameHeader reads a header and checks the length against the type's
// limit, before anything is allocated for the payload.
func DecodeFrameHeader(b [FrameHeader]byte, limit int) (FrameType, int, error) {
	t := FrameType(b[0])
	most, ok := t.MaxPayload(limit)
	if !ok {
		return 0, 0, &FormatError{Message: "frame", Field: "type", Offset: 0, Err: ErrMalformed}
	}
	n := binary.LittleEndian.Uint32(b[1:])
	if uint64(n) > uint64(most) {
		return 0, 0, &FormatError{Message: t.String(), Field: "length", Offset: 1,
			Err: fmt.Errorf("%w: %d bytes, at most %d allowed", ErrMalformed, n, most)}
	}
	return t, int(n), nil
}
