package gossip

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

var wantTcpdump = flag.Bool("tcpdump", false, "fail, rather than skip, where tcpdump cannot capture packets on loopback")

// TestCountersAgainstTcpdump compares the counters of nodes with tcpdump's bytes: by kind or, if a secret
// hides the kinds, in total.
func TestCountersAgainstTcpdump(t *testing.T) {
	for i, secret := range [][]byte{nil, testSecret} {
		t.Run(fmt.Sprintf("secret=%t", secret != nil), func(t *testing.T) {
			t.Parallel()
			var c capture
			// Addresses that no other program on this machine is likely to use.
			subnet := fmt.Sprintf("127.%d.%d", 64+2*(os.Getpid()%32)+i, os.Getpid()/32%256)
			stop := c.start(t, subnet)
			before, after := talk(t, new(systemNetwork), subnet, secret, stop)
			if secret == nil {
				compareCounters(t, before, after, c.sort())
			} else {
				compareCounter(t, "everything", before.traffic().All(), after.traffic().All(), c.payload)
			}
		})
	}
}

// start makes tcpdump capture the packets of a subnet on loopback until stop is called, which returns when
// c has all of them.
func (c *capture) start(t *testing.T, subnet string) (stop func()) {
	skip := t.Skipf
	if *wantTcpdump {
		skip = t.Fatalf
	}
	path, err := exec.LookPath("tcpdump")
	if err != nil {
		skip("tcpdump is not installed: %v", err)
	}
	cmd := exec.Command(path, "-i", "lo", "-n", "-s", "0", "-U", "-B", "8192", "-w", "-", "net", subnet+".0/24", "and", "(udp or tcp)")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	said := bufio.NewReader(stderr)
	if line, err := said.ReadString('\n'); err != nil || !strings.Contains(line, "listening on") {
		skip("tcpdump cannot capture here: %s", line)
	}
	end := []byte("the end of " + t.Name())
	ended := make(chan error, 1)
	go func() { ended <- c.read(out, end) }()
	return func() {
		// When tcpdump shows this packet, it has shown all packets before.
		if err := sendUDP(subnet+".254:9", end); err != nil {
			t.Fatal(err)
		}
		select {
		case err = <-ended:
		case <-time.After(30 * time.Second):
			err = errors.New("tcpdump does not show the last packet")
		}
		cmd.Process.Signal(os.Interrupt)
		rest, _ := io.ReadAll(said)
		if err != nil || !bytes.Contains(rest, []byte("\n0 packets dropped by kernel")) {
			t.Fatalf("%v; tcpdump wrote %s", err, rest)
		}
	}
}

func sendUDP(to string, b []byte) error {
	c, err := net.Dial("udp", to)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Write(b)
	return err
}

// A capture has the packets of some peers on loopback as captured by tcpdump.
type capture struct {
	payload int64 // of all packets
	tap     wiretap
	streams map[[2]netip.AddrPort]*captured // by client and server
	order   []*captured
	packets [][]byte
}

// A captured stream has the segments of both ways; the client's are the first.
type captured struct{ ways [2][]segment }

type segment struct {
	at   uint32 // sequence number
	data []byte
}

// read reads a file in tcpdump's format, until the packet with the payload end or, if that is nil, the end
// of the file.
func (c *capture) read(r io.Reader, end []byte) error {
	in := bufio.NewReader(r)
	var head [24]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return fmt.Errorf("tcpdump: %w", err)
	}
	const littleEndian, ethernet = 0xa1b2c3d4, 1
	if binary.LittleEndian.Uint32(head[:]) != littleEndian || binary.LittleEndian.Uint32(head[20:]) != ethernet {
		return fmt.Errorf("tcpdump: a file that begins with % x", head)
	}
	c.streams = make(map[[2]netip.AddrPort]*captured)
	for {
		var record [16]byte
		if _, err := io.ReadFull(in, record[:]); err == io.EOF && end == nil {
			return nil
		} else if err != nil {
			return fmt.Errorf("tcpdump: %w", err)
		}
		packet := make([]byte, binary.LittleEndian.Uint32(record[8:]))
		if _, err := io.ReadFull(in, packet); err != nil {
			return fmt.Errorf("tcpdump: %w", err)
		}
		const ethernetHeader = 14
		last, err := c.packet(packet[ethernetHeader:], end)
		if err != nil || last {
			return err
		}
	}
}

// packet reads an IPv4 packet.
func (c *capture) packet(b, end []byte) (last bool, err error) {
	const udp, tcp = 17, 6
	header := int(b[0]&15) * 4
	protocol, length := b[9], int(binary.BigEndian.Uint16(b[2:]))
	from, _ := netip.AddrFromSlice(b[12:16])
	to, _ := netip.AddrFromSlice(b[16:20])
	b = b[header:length]
	source := netip.AddrPortFrom(from, binary.BigEndian.Uint16(b))
	target := netip.AddrPortFrom(to, binary.BigEndian.Uint16(b[2:]))
	switch protocol {
	case udp:
		const header = 8
		if b = b[header:]; end != nil && bytes.Equal(b, end) {
			return true, nil
		}
		c.payload += int64(len(b))
		c.packets = append(c.packets, b)
	case tcp:
		const syn, ack = 2, 16
		at, flags, data := binary.BigEndian.Uint32(b[4:]), b[13], b[b[12]>>4*4:]
		if flags&(syn|ack) == syn { // a client's first
			s := new(captured)
			c.streams[[2]netip.AddrPort{source, target}] = s
			c.order = append(c.order, s)
		}
		s, way := c.streams[[2]netip.AddrPort{source, target}], 0
		if s == nil {
			s, way = c.streams[[2]netip.AddrPort{target, source}], 1
		}
		switch {
		case len(data) == 0: // perhaps the end of a stream that began before
		case s == nil:
			return false, fmt.Errorf("tcpdump: bytes from %v to %v, of a stream whose beginning is missing", source, target)
		default:
			c.payload += int64(len(data))
			s.ways[way] = append(s.ways[way], segment{at, data})
		}
	default:
		return false, fmt.Errorf("tcpdump: a packet of protocol %d", protocol)
	}
	return false, nil
}

// sort returns the bytes of the packets by kind.
func (c *capture) sort() byKind {
	for _, b := range c.packets {
		c.tap.packet(b)
	}
	for _, s := range c.order {
		var f flow
		c.tap.sent(&f, joined(s.ways[0]))
		c.tap.stream(&f, &f.back, joined(s.ways[1]))
	}
	return c.tap.traffic
}

// joined puts segments in order, and leaves out bytes that were sent twice.
func joined(list []segment) (out []byte) {
	if len(list) == 0 {
		return nil
	}
	first := list[0].at
	slices.SortStableFunc(list, func(a, b segment) int { return int(int32(a.at - b.at)) })
	if int32(list[0].at-first) < 0 {
		first = list[0].at
	}
	for _, s := range list {
		if have := uint32(len(out)) - (s.at - first); int32(have) < int32(len(s.data)) {
			out = append(out, s.data[have:]...)
		}
	}
	return out
}
