package gossip

import (
	"encoding/json"
	"net"
	"sync/atomic"

	"github.com/summarycache/summarycache/gossip/exchange"
)

// A TrafficKind is a purpose of bytes on the gossip port.
type TrafficKind uint8

const (
	Adverts       TrafficKind = iota // datagrams about versions, without the changes in steps
	Deltas                           // changes: fetched, or in steps
	Snapshots                        // digests fetched whole
	Requests                         // for deltas and snapshots, answers without either, and questions of light peers with their answers
	Vectors                          // comparisons of all versions with a random peer
	Greetings                        // at the start of streams
	Invalidations                    // with their receipts
	Membership                       // failure detection and member lists, by memberlist
	Sealing                          // bytes added by encryption, with handshakes

	TrafficKinds = int(Sealing) + 1
)

var trafficNames = [...]string{"advert", "delta", "snapshot", "request", "vector", "greeting", "invalidation", "membership", "sealing"}

func (k TrafficKind) String() string { return trafficNames[k] }

// Traffic counts bytes on the gossip port, by [TrafficKind]: the whole payload of UDP and TCP, without
// headers.
type Traffic [TrafficKinds]int64

// ByKind returns the bytes by the names of their kinds.
func (t Traffic) ByKind() map[string]int64 {
	named := make(map[string]int64)
	for k, n := range t {
		named[TrafficKind(k).String()] = n
	}
	return named
}

// MarshalJSON implements [json.Marshaler]: an object with ByKind.
func (t Traffic) MarshalJSON() ([]byte, error) { return json.Marshal(t.ByKind()) }

// UnmarshalJSON implements [json.Unmarshaler]. It ignores kinds that it does not know.
func (t *Traffic) UnmarshalJSON(b []byte) error {
	var named map[string]int64
	err := json.Unmarshal(b, &named)
	for k := range t {
		t[k] = named[TrafficKind(k).String()]
	}
	return err
}

// Digests returns the bytes that kept replicas up to date: all except invalidations, membership and
// sealing.
func (t Traffic) Digests() int64 { return t.All() - t[Invalidations] - t[Membership] - t[Sealing] }

// All returns the bytes of every kind.
func (t Traffic) All() (sum int64) {
	for _, n := range t {
		sum += n
	}
	return sum
}

// A meter counts traffic in one direction. All methods may be called at any time.
type meter struct {
	kinds   [TrafficKinds]atomic.Int64
	streams atomic.Int64 // bytes of connections, including encryption
	inside  atomic.Int64 // of these, bytes that are also in kinds
}

func (m *meter) packet(k TrafficKind, n int) { m.kinds[k].Add(int64(n)) }

// move counts n bytes as another kind than they are counted as elsewhere.
func (m *meter) move(from, to TrafficKind, n int) {
	m.packet(from, -n)
	m.packet(to, n)
}

func (m *meter) stream(k TrafficKind, n int) {
	m.kinds[k].Add(int64(n))
	m.inside.Add(int64(n))
}

// frame counts bytes of a frame.
func (m *meter) frame(t exchange.FrameType, n int) {
	k := Greetings
	switch t {
	case exchange.FrameDelta:
		k = Deltas
	case exchange.FrameSnapshot:
		k = Snapshots
	case exchange.FrameGet, exchange.FrameSame, exchange.FrameBusy, exchange.FrameUnknown:
		k = Requests
	case exchange.FrameSync, exchange.FrameVector:
		k = Vectors
	case exchange.FrameRecall, exchange.FrameLogs:
		k = Invalidations
	}
	m.stream(k, n)
}

func (m *meter) traffic() (t Traffic) {
	for k := range t {
		t[k] = m.kinds[k].Load()
	}
	t[Sealing] += max(0, m.streams.Load()-m.inside.Load())
	return t
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
	return &meteredConn{c, func(n int) { m.in.stream(Membership, n) }, func(n int) { m.out.stream(Membership, n) }}
}
