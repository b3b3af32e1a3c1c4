package gossip

import (
	"net"
	"sync/atomic"

	"github.com/summarycache/summarycache/gossip/exchange"
)

// Traffic counts bytes on the gossip port by their purpose: the whole payload of UDP and TCP, without headers.
type Traffic struct {
	Adverts   int64 `json:"advert"`   // datagrams about versions, without the changes in steps
	Deltas    int64 `json:"delta"`    // changes: fetched, or in steps
	Snapshots int64 `json:"snapshot"` // digests fetched whole
	// for deltas and snapshots, answers without either, and questions of light peers with their answers
	Requests      int64 `json:"request"`
	Vectors       int64 `json:"vector"`       // comparisons of all versions with a random peer
	Greetings     int64 `json:"greeting"`     // at the start of streams
	Invalidations int64 `json:"invalidation"` // with their receipts
	Membership    int64 `json:"membership"`   // failure detection and member lists, by memberlist
	Sealing       int64 `json:"sealing"`      // bytes added by encryption, with handshakes
}

// Digests returns the bytes that kept replicas up to date: all except invalidations, membership and
// sealing.
func (t Traffic) Digests() int64 {
	return t.Adverts + t.Deltas + t.Snapshots + t.Requests + t.Vectors + t.Greetings
}

// All returns the bytes of every kind.
func (t Traffic) All() int64 { return t.Digests() + t.Invalidations + t.Membership + t.Sealing }

// A kind is a field of [Traffic].
type kind uint8

const (
	kindAdverts kind = iota
	kindDeltas
	kindSnapshots
	kindRequests
	kindVectors
	kindGreetings
	kindInvalidations
	kindMembership
	kindSealing

	kinds = int(kindSealing) + 1
)

// byKind counts bytes by kind.
type byKind [kinds]int64

func (b byKind) traffic() Traffic {
	return Traffic{b[kindAdverts], b[kindDeltas], b[kindSnapshots], b[kindRequests], b[kindVectors], b[kindGreetings],
		b[kindInvalidations], b[kindMembership], b[kindSealing]}
}

// A meter counts traffic in one direction. All methods may be called at any time.
type meter struct {
	kinds   [kinds]atomic.Int64
	streams atomic.Int64 // bytes of connections, including encryption
	inside  atomic.Int64 // of these, bytes that are also in kinds
}

func (m *meter) packet(k kind, n int) { m.kinds[k].Add(int64(n)) }

// move counts n bytes as another kind than they are counted as elsewhere.
func (m *meter) move(from, to kind, n int) {
	m.packet(from, -n)
	m.packet(to, n)
}

func (m *meter) stream(k kind, n int) {
	m.kinds[k].Add(int64(n))
	m.inside.Add(int64(n))
}

// frame counts bytes of a frame.
func (m *meter) frame(t exchange.FrameType, n int) {
	k := kindGreetings
	switch t {
	case exchange.FrameDelta:
		k = kindDeltas
	case exchange.FrameSnapshot:
		k = kindSnapshots
	case exchange.FrameGet, exchange.FrameSame, exchange.FrameBusy, exchange.FrameUnknown:
		k = kindRequests
	case exchange.FrameSync, exchange.FrameVector:
		k = kindVectors
	case exchange.FrameRecall, exchange.FrameLogs:
		k = kindInvalidations
	}
	m.stream(k, n)
}

func (m *meter) traffic() Traffic {
	var b byKind
	for k := range b {
		b[k] = m.kinds[k].Load()
	}
	b[kindSealing] += max(0, m.streams.Load()-m.inside.Load())
	return b.traffic()
}

// meters count both directions.
type meters struct{ in, out meter }

// A meteredConn counts the bytes that it carries.
type meteredConn struct {
	net.Conn
	in, out func(n int)
}

func (c *meteredConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.in(n)
	return n, err
}

func (c *meteredConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.out(n)
	return n, err
}

// whole counts all bytes of c, as sealing if they are not counted otherwise.
func (m *meters) whole(c net.Conn) net.Conn {
	return &meteredConn{c, func(n int) { m.in.streams.Add(int64(n)) }, func(n int) { m.out.streams.Add(int64(n)) }}
}

// members counts the bytes of c as memberlist's.
func (m *meters) members(c net.Conn) net.Conn {
	return &meteredConn{c, func(n int) { m.in.stream(kindMembership, n) }, func(n int) { m.out.stream(kindMembership, n) }}
}
