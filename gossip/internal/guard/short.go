package guard

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/summarycache/summarycache/gossip/exchange"
)

// Most packets of a cluster at rest are probes and answers to them. memberlist writes the names of
// fields, and the names and addresses of peers: some 60 and 25 bytes. A lone one travels in a short form:
//
//	probe   20, its number, the tag of the peer that is probed           8 bytes
//	        21, the same, a token, a sum                                16 bytes
//	answer  22, its number, the payload                                  5 bytes and the payload
//	        23, its number, a token, the payload                         9 bytes and the payload
//
// The receiver gives memberlist what that stands for, without the token (see life). An answer goes to where
// the probe came from.

const (
	Short = 2 // the upper four bits of the first byte

	ShortPing = byte(Short)<<4 | MsgPing
	ShortAck  = byte(Short)<<4 | MsgAck
	ShortHead = 1 + 4 // the kind, and the number
	shortTag  = 3

	WithToken  = 1 // added to the kind
	tokenBytes = 4
)

var errOther = errors.New("a probe of another peer")

// Shorten returns the short form of a packet of memberlist's, or the packet itself if it has none.
func Shorten(b []byte) []byte {
	message := b
	if len(b) > checksumHead && b[0] == msgChecksummed {
		message = b[checksumHead:]
	}
	if len(message) == 0 || message[0] != MsgPing && message[0] != MsgAck {
		return b
	}
	u := unpacker{b: message, at: 1}
	c, err := read(&u, message[0])
	if err != nil || u.at < len(message) || message[0] == MsgPing && c.Name == "" {
		return b
	}
	short := binary.LittleEndian.AppendUint32([]byte{Short<<4 | message[0]}, uint32(c.number))
	if message[0] == MsgAck {
		return append(short, c.answer...)
	}
	return exchange.IDOf(c.Name).AppendTag(short)
}

// lengthen returns the message of memberlist's for which a short one stands, to the peer called self.
func lengthen(b []byte, self string) ([]byte, error) {
	if len(b) < ShortHead {
		return nil, fmt.Errorf("%w: a short probe of %d bytes", errNotPacked, len(b))
	}
	number, rest := binary.LittleEndian.Uint32(b[1:]), b[ShortHead:]
	switch kind := b[0] & 0xf; {
	case kind == MsgPing|WithToken && len(rest) == shortTag+tokenBytes+SumBytes, kind == MsgPing && len(rest) == shortTag:
		rest = rest[:shortTag]
		if string(rest) != string(exchange.IDOf(self).AppendTag(nil)) {
			return nil, errOther
		}
		return Pack(MsgPing, "SeqNo", number, "Node", self), nil
	case kind == MsgAck|WithToken && len(rest) == tokenBytes+SumBytes:
		return Pack(MsgAck, "SeqNo", number, "Payload", rest[tokenBytes:]), nil
	case kind == MsgAck && len(rest) <= AnswerBytes:
		return Pack(MsgAck, "SeqNo", number, "Payload", rest), nil
	}
	return nil, fmt.Errorf("%w (a short one, %d, of %d bytes)", errKind, b[0]&0xf, len(b))
}
