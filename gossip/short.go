package gossip

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
	shortPing = byte(ofProbe)<<4 | msgPing
	shortAck  = byte(ofProbe)<<4 | msgAck
	shortHead = 1 + 4 // the kind, and the number
	shortTag  = 3

	withToken  = 1 // added to the kind
	tokenBytes = 4
)

var errOther = errors.New("a probe of another peer")

// shorten returns the short form of a packet of memberlist's, or the packet itself if it has none.
func shorten(b []byte) []byte {
	message := b
	if len(b) > checksumHead && b[0] == msgChecksummed {
		message = b[checksumHead:]
	}
	if len(message) == 0 || message[0] != msgPing && message[0] != msgAck {
		return b
	}
	u := unpacker{b: message, at: 1}
	c, err := read(&u, message[0])
	if err != nil || u.at < len(message) || message[0] == msgPing && c.name == "" {
		return b
	}
	short := binary.LittleEndian.AppendUint32([]byte{byte(ofProbe)<<4 | message[0]}, uint32(c.number))
	if message[0] == msgAck {
		return append(short, c.answer...)
	}
	return exchange.IDOf(c.name).AppendTag(short)
}

// lengthen returns the message of memberlist's for which a short one stands, to the peer called self.
func lengthen(b []byte, self string) ([]byte, error) {
	if len(b) < shortHead {
		return nil, fmt.Errorf("%w: a short probe of %d bytes", errNotPacked, len(b))
	}
	number, rest := binary.LittleEndian.Uint32(b[1:]), b[shortHead:]
	switch kind := b[0] & 0xf; {
	case kind == msgPing|withToken && len(rest) == shortTag+tokenBytes+sumBytes, kind == msgPing && len(rest) == shortTag:
		rest = rest[:shortTag]
		if string(rest) != string(exchange.IDOf(self).AppendTag(nil)) {
			return nil, errOther
		}
		return pack(msgPing, "SeqNo", number, "Node", self), nil
	case kind == msgAck|withToken && len(rest) == tokenBytes+sumBytes:
		return pack(msgAck, "SeqNo", number, "Payload", rest[tokenBytes:]), nil
	case kind == msgAck && len(rest) <= answerBytes:
		return pack(msgAck, "SeqNo", number, "Payload", rest), nil
	}
	return nil, fmt.Errorf("%w (a short one, %d, of %d bytes)", errKind, b[0]&0xf, len(b))
}
