package exchange

import (
	"encoding/binary"
	"fmt"

	"github.com/summarycache/summarycache/gossip/internal/wire"
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

	// Of package invalidation.
	FrameRecall FrameType = 32
	FrameLogs   FrameType = 33
)

// frames has the name of each type and the length in bytes of its longest payload. For aBody that
// is the limit of the reader.
var frames = map[FrameType]struct {
	name string
	most int
}{
	FrameHello:    {"hello", 256},
	FrameWelcome:  {"welcome", 256},
	FrameRefuse:   {"refuse", 256},
	FrameGet:      {"get", 128},
	FrameSnapshot: {"snapshot", aBody},
	FrameDelta:    {"delta", aBody},
	FrameSame:     {"same", 128},
	FrameBusy:     {"busy", binary.MaxVarintLen64},
	FrameUnknown:  {"unknown", 0},
	FrameSync:     {"sync", 1 << 20},
	FrameVector:   {"vector", 1 << 20},
	FrameRecall:   {"recall", 1 << 20},
	FrameLogs:     {"logs", 1 << 20},
}

const aBody = -1

func (t FrameType) String() string {
	if f, ok := frames[t]; ok {
		return f.name
	}
	return fmt.Sprintf("frame type %d", uint8(t))
}

// FrameHeader is the length in bytes of a frame's header.
const FrameHeader = 5

// BeginFrame appends the header of a frame. Append the payload, then call [EndFrame].
func BeginFrame(dst []byte, t FrameType) []byte {
	return append(dst, byte(t), 0, 0, 0, 0)
}

// EndFrame sets the length in the header of the frame that begins at start.
func EndFrame(dst []byte, start int) []byte {
	binary.LittleEndian.PutUint32(dst[start+1:], uint32(len(dst)-start-FrameHeader))
	return dst
}

// appendFrame appends a frame without a payload.
func appendFrame(dst []byte, t FrameType) []byte { return EndFrame(BeginFrame(dst, t), len(dst)) }

// DecodeFrameHeader reads a header and checks the length against the type's limit, before the
// payload is allocated.
func DecodeFrameHeader(b [FrameHeader]byte, limit int) (FrameType, int, error) {
	t := FrameType(b[0])
	f, ok := frames[t]
	if !ok {
		return 0, 0, &wire.FormatError{Message: "frame", Field: "type", Offset: 0, Err: ErrMalformed}
	}
	most := f.most
	if most == aBody {
		most = limit
	}
	n := binary.LittleEndian.Uint32(b[1:])
	if uint64(n) > uint64(most) {
		return 0, 0, &wire.FormatError{Message: t.String(), Field: "length", Offset: 1,
			Err: fmt.Errorf("%w: %d bytes, at most %d allowed", ErrMalformed, n, most)}
	}
	return t, int(n), nil
}
