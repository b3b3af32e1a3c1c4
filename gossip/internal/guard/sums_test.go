package guard

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/netip"
	"testing"

	"github.com/summarycache/summarycache/gossip/exchange"
)

// some are the members m0, m1, … that a peer knows, each at an address of its own and with 100 bytes of metadata. Those in old
// it knows with other metadata.
type some struct {
	nobody
	n   int
	old map[int]bool
}

func (s some) Count() int { return s.n }

func (s some) member(i int) []byte {
	meta := bytes.Repeat([]byte{byte(i), byte(i >> 8)}, 50)
	if s.old[i] {
		meta[0]++
	}
	return Pack(0, "Name", fmt.Sprint("m", i), "Addr", []byte{10, 1, byte(i >> 8), byte(i)}, "Port", uint16(7946), "Meta", meta,
		"Incarnation", uint32(1), "State", byte(0), "Vsn", []byte{1, 5, 2, 0, 0, 0})[1:]
}

func (s some) Sums(n int) []uint32 {
	sums := make([]uint32, n)
	for i := range s.n {
		sums[RangeOf(exchange.IDOf(fmt.Sprint("m", i)), n)] += crc32.ChecksumIEEE(s.member(i))
	}
	return sums
}

// list is memberlist's list of them.
func (s some) list() []byte {
	b := Pack(MsgPushPull, "Nodes", uint32(s.n), "UserStateLen", uint32(0), "Join", false)
	for i := range s.n {
		b = append(b, s.member(i)...)
	}
	return b
}

// counted counts what is written to a connection.
type counted struct {
	net.Conn
	bytes int
}

func (c *counted) Write(b []byte) (int, error) {
	c.bytes += len(b)
	return c.Conn.Write(b)
}

// exchangeLists lets a peer that knows dialler's members exchange lists with one that knows accepter's, as memberlist does.
// It returns how many members each received, and how many bytes each sent.
func exchangeLists(t *testing.T, dialler, accepter some) (received, sent [2]int) {
	t.Helper()
	near, far := net.Pipe()
	ends := [2]*counted{{Conn: near}, {Conn: far}}
	members := func(c net.Conn, header int) int {
		b, err := io.ReadAll(c)
		if err != nil {
			t.Errorf("reading a list: %v", err)
			return -1
		}
		claim, err := read(&unpacker{b: b[header:], at: 1}, MsgPushPull)
		if err != nil {
			t.Errorf("the list is none: %v", err)
		}
		return claim.members
	}
	done := make(chan struct{})
	screen := func(known some) *Screen {
		s := testScreen(16_383)
		s.cfg.Members = known
		return s
	}
	go func() {
		defer close(done)
		c := screen(accepter).Stream(ends[1], true)
		defer c.Close()
		received[1] = members(c, len(HeaderOf("")))
		c.Write(accepter.list())
	}()
	c := screen(dialler).Stream(ends[0], false)
	defer c.Close()
	if _, err := c.Write(HeaderOf("")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(dialler.list()); err != nil {
		t.Fatal(err)
	}
	received[0] = members(c, 0)
	<-done
	return received, [2]int{ends[0].bytes, ends[1].bytes}
}

// TestListsAreDifferences: of ten thousand members two peers exchange those in whose ranges they differ, and a peer
// that joins gets all.
func TestListsAreDifferences(t *testing.T) {
	all := some{n: 10_000}
	for _, c := range []struct {
		name              string
		dialler, accepter some
		least, most       [2]int // members received
		bytes             [2]int // sent, at most
	}{
		{"equal", all, all, [2]int{0, 0}, [2]int{0, 0}, [2]int{3 << 10, 3 << 10}},
		{"three differ", all, some{n: 10_000, old: map[int]bool{7: true, 77: true, 777: true}}, [2]int{3, 3}, [2]int{150, 150}, [2]int{30 << 10, 30 << 10}},
		{"one joined", all, some{n: 10_001}, [2]int{1, 0}, [2]int{60, 60}, [2]int{12 << 10, 12 << 10}},
		{"newcomer", some{n: 1}, all, [2]int{10_000, 1}, [2]int{10_000, 1}, [2]int{1 << 10, 3 << 20}},
		{"halves of a cluster", some{n: 5_000}, all, [2]int{9_000, 4_000}, [2]int{10_000, 5_000}, [2]int{1 << 20, 3 << 20}},
		{"two", some{n: 2}, some{n: 2}, [2]int{0, 0}, [2]int{0, 0}, [2]int{64, 64}},
	} {
		received, sent := exchangeLists(t, c.dialler, c.accepter)
		t.Logf("%s: members received %v, bytes sent %v", c.name, received, sent)
		for end := range 2 {
			if received[end] < c.least[end] || received[end] > c.most[end] || sent[end] > c.bytes[end] {
				t.Errorf("%s: %d members received, want %d to %d; %d bytes sent, want at most %d", c.name,
					received[end], c.least[end], c.most[end], sent[end], c.bytes[end])
			}
		}
	}
}

// TestWrongSums: a stream may begin without sums; with half of them, or too many, it is refused before memory is taken for them.
func TestWrongSums(t *testing.T) {
	for name, c := range map[string]struct {
		bytes []byte
		want  error
	}{
		"none":     {append(bytes.Clone(HeaderOf("")), Pack(MsgPing, "SeqNo", uint32(1), "Node", "self")...), nil},
		"too many": {append([]byte{SumsByte, maxRangeBits + 1}, make([]byte, rangeBytes<<(maxRangeBits+1))...), errNotPacked},
		"half":     {[]byte{SumsByte, 3, 0, 0, 0, 0}, io.ErrUnexpectedEOF},
		"no label": {append([]byte{SumsByte, 0, 1, 2, 3, 4}, Pack(MsgPushPull, "Nodes", uint32(0), "Join", false)...), errNotPacked},
	} {
		near, far := net.Pipe()
		go func() {
			far.Write(c.bytes)
			if c.want == io.ErrUnexpectedEOF {
				far.Close() // not before an answer to what is complete
			}
		}()
		go io.Copy(io.Discard, far)
		s := testScreen(10)
		conn := s.Stream(near, true)
		_, err := conn.Read(make([]byte, 1))
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if most := s.perHost[netip.Addr{}]; most > 4<<10+screenAnswer {
			t.Errorf("%s: %d bytes are claimed", name, most)
		}
		conn.Close()
	}
}

// TestListsOfStrangers: a peer that knows few members takes no long list from others, and the longest if it asks for it.
func TestListsOfStrangers(t *testing.T) {
	for _, stranger := range []bool{true, false} {
		near, far := net.Pipe()
		b := some{n: 16_383}.list()
		if stranger {
			b = append(bytes.Clone(HeaderOf("")), b...)
		}
		go func() {
			far.Write(b)
			far.Close()
		}()
		s := testScreen(16_383)
		c := s.Stream(near, stranger)
		_, err := c.Read(make([]byte, 1))
		if errors.Is(err, errScreenMemory) != stranger || !stranger && err != nil {
			t.Errorf("a list of 16,383 members, sent by a stranger %v: %v", stranger, err)
		}
		if limit := screenHost; stranger && s.used > limit {
			t.Errorf("a stranger's list takes %d bytes, more than %d", s.used, limit)
		}
		c.Close()
	}
}
