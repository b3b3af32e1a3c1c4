package gossip

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"sync"

	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/internal/guard"
)

// A wiretap counts the bytes between hosts of a network without a secret by kind, like tcpdump: it does not
// use the nodes' own counters.
type wiretap struct {
	mu      sync.Mutex
	traffic byKind
	headers int64 // of IP, UDP and TCP, as far as they can be told from the calls
	packets int64
	streams int64
	inside  int64 // payload of streams, both ways
}

// Lengths of headers on the wire, in bytes.
const (
	udpHeaders  = 20 + 8
	tcpHeaders  = 20 + 20 + 12 // with time stamps, as is usual
	tcpSegment  = 1448
	tcpAround   = 7 * tcpHeaders // to open and to close
	memberMagic = firstMemberlist
)

func (w *wiretap) read() (byKind, int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.traffic, w.headers
}

// A tappedNetwork is a network that records the packets sent and the streams dialled.
type tappedNetwork struct {
	tap *wiretap
	Network
}

func (h tappedNetwork) ListenPacket(addr string) (net.PacketConn, error) {
	c, err := h.Network.ListenPacket(addr)
	if err != nil {
		return nil, err
	}
	return tappedPackets{h.tap, c}, nil
}

func (h tappedNetwork) Dial(ctx context.Context, addr string) (net.Conn, error) {
	c, err := h.Network.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	h.tap.mu.Lock()
	h.tap.headers += tcpAround
	h.tap.streams++
	h.tap.mu.Unlock()
	return &tappedStream{Conn: c, tap: h.tap}, nil
}

type tappedPackets struct {
	tap *wiretap
	net.PacketConn
}

func (c tappedPackets) WriteTo(b []byte, to net.Addr) (int, error) {
	c.tap.mu.Lock()
	c.tap.headers += udpHeaders
	c.tap.packets++
	c.tap.packet(b)
	c.tap.mu.Unlock()
	return c.PacketConn.WriteTo(b, to)
}

// packet counts a packet's bytes by kind.
func (w *wiretap) packet(b []byte) {
	switch kindOf(b) {
	case ofInvalidation:
		w.traffic[kindInvalidations] += int64(len(b))
		return
	case ofExchange:
		w.datagram(b)
		return
	}
	sum := 0
	if kindOf(b) == ofProbe && (b[0]&0xf&^guard.WithToken == guard.MsgAck && len(b) > guard.ShortHead || b[0] == guard.ShortPing|guard.WithToken) || bytes.Contains(b, []byte("\xa7Payload\xa4")) || bytes.Contains(b, []byte("\xa7Payload\xac")) { // of an answer to a probe
		sum = guard.SumBytes
	}
	w.traffic[kindVectors] += int64(sum)
	w.traffic[kindMembership] += int64(len(b) - sum)
}

func (w *wiretap) datagram(b []byte) {
	change := 0
	if s, err := exchange.DecodeStep(b); err == nil {
		change = len(s.Change)
	}
	w.traffic[kindDeltas] += int64(change)
	w.traffic[kindAdverts] += int64(len(b) - change)
}

// A tappedStream is the client's end of a stream.
type tappedStream struct {
	net.Conn
	tap *wiretap
	flow
}

// A flow is the state of a stream.
type flow struct {
	there, back frames // from the client, and to it
	members     bool   // the stream is memberlist's
}

// frames finds the frames in a stream of bytes.
type frames struct {
	begun bool
	kind  exchange.FrameType // zero before the first: greetings
	head  []byte             // of a header, as far as it has come
	left  int                // of a payload
}

func (c *tappedStream) Write(b []byte) (int, error) {
	c.tap.mu.Lock()
	c.tap.inside += int64(len(b))
	c.tap.sent(&c.flow, b)
	c.tap.mu.Unlock()
	return c.Conn.Write(b)
}

func (c *tappedStream) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.tap.mu.Lock()
		c.tap.inside += int64(n)
		c.tap.stream(&c.flow, &c.back, b[:n])
		c.tap.mu.Unlock()
	}
	return n, err
}

// sent counts the bytes that the client of a stream sends, by kind.
func (w *wiretap) sent(f *flow, b []byte) {
	if len(b) > 0 && !f.there.begun {
		f.there.begun = true
		f.members = b[0] == memberMagic || b[0] == guard.SumsByte
		if !f.members {
			f.there.left = 2 // what a client begins with
		}
	}
	w.stream(f, &f.there, b)
}

// stream counts bytes of one direction of a stream, by kind.
func (w *wiretap) stream(f *flow, way *frames, b []byte) {
	segments := (len(b) + tcpSegment - 1) / tcpSegment
	w.headers += int64((segments + 1) * tcpHeaders) // and one that confirms
	if f.members {
		w.traffic[kindMembership] += int64(len(b))
		return
	}
	for len(b) > 0 {
		if way.left == 0 {
			take := min(len(b), exchange.FrameHeader-len(way.head))
			way.head = append(way.head, b[:take]...)
			b = b[take:]
			if len(way.head) < exchange.FrameHeader {
				return
			}
			way.kind = exchange.FrameType(way.head[0])
			way.left = int(binary.LittleEndian.Uint32(way.head[1:]))
			way.head = way.head[:0]
			w.traffic[frameKinds[way.kind]] += exchange.FrameHeader
		}
		take := min(len(b), way.left)
		w.traffic[frameKinds[way.kind]] += int64(take)
		way.left -= take
		b = b[take:]
	}
}

var frameKinds = map[exchange.FrameType]kind{
	0:                   kindGreetings,
	exchange.FrameHello: kindGreetings, exchange.FrameWelcome: kindGreetings, exchange.FrameRefuse: kindGreetings,
	exchange.FrameGet: kindRequests, exchange.FrameSame: kindRequests, exchange.FrameBusy: kindRequests, exchange.FrameUnknown: kindRequests,
	exchange.FrameDelta: kindDeltas, exchange.FrameSnapshot: kindSnapshots,
	exchange.FrameSync: kindVectors, exchange.FrameVector: kindVectors,
	exchange.FrameRecall: kindInvalidations, exchange.FrameLogs: kindInvalidations,
}
