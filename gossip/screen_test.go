package gossip

import (
	"bytes"
	"encoding/binary"
	"log/slog"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// deadMessage is memberlist's word that a peer is dead.
func deadMessage(name string, incarnation uint32) []byte {
	b := append([]byte{msgDead, 0x83, 0xab}, "Incarnation"...)
	b = binary.BigEndian.AppendUint32(append(b, 0xce), incarnation)
	b = append(append(append(b, 0xa4), "Node"...), 0xa0|byte(len(name)))
	return append(append(append(append(b, name...), 0xa4), "From"...), 0xa1, 'x')
}

// TestNoPeerIsEvicted: one packet with the greatest incarnation used to make a live peer
// dead for all others until it was started again.
func TestNoPeerIsEvicted(t *testing.T) {
	for _, incarnation := range []uint32{1, 1000, 1 << 16, 1 << 31, 1<<32 - 1} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			defer c.close()
			for i, name := range []string{"p1", "p2", "p3"} {
				ip := []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}[i]
				cfg := c.config(name, ip)
				cfg.Secret = nil
				cfg.Holdings = NewHoldings(newFilter(t, nil))
				if i > 0 {
					cfg.Join = []string{"10.0.0.1:7946"}
				}
				c.start(cfg)
			}
			within(t, 5*time.Second, c.inStep)
			from, err := c.net.Host("10.6.6.6").ListenPacket(":1")
			if err != nil {
				t.Fatal(err)
			}
			defer from.Close()
			packet := append(bytes.Clone(plainHeader), deadMessage("p3", incarnation)...)
			for range 3 {
				for _, to := range []string{"p1", "p2"} {
					from.WriteTo(packet, net.UDPAddrFromAddrPort(c.nodes[to].advertise))
				}
				time.Sleep(100 * time.Millisecond)
			}
			time.Sleep(2 * time.Second)
			for _, at := range []string{"p1", "p2"} {
				for _, m := range c.nodes[at].Members() {
					if !m.Alive {
						t.Errorf("2 s after a dead of incarnation %d, %s is dead for %s", incarnation, m.Name, at)
					}
				}
			}
		})
	}
}

// TestScreenLetsMembershipThrough: nothing that peers say to each other in a life of
// joins, losses, deaths and returns is refused.
func TestScreenLetsMembershipThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		var log logBuffer
		config := func(name, ip string) Config {
			cfg := c.config(name, ip)
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
			if name != "p1" {
				cfg.Join = []string{"10.0.0.1:7946"}
			}
			return cfg
		}
		ips := []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5"}
		for i, ip := range ips {
			c.start(config("p"+string(rune('1'+i)), ip))
		}
		within(t, 10*time.Second, c.inStep)
		c.kill("p4")
		time.Sleep(20 * time.Second) // suspected, dead, told to others
		c.start(config("p4", "10.0.0.4"))
		time.Sleep(time.Minute) // lists of members are exchanged
		within(t, 10*time.Second, c.inStep)
		for name, n := range c.nodes {
			if s := n.Stats(); s.PacketsStrange != 0 {
				t.Errorf("%s refused %d packets", name, s.PacketsStrange)
			}
		}
		if log.has("refused a packet") || log.has("memberlist's encoding") {
			t.Errorf("the log says:\n%s", log.b.String())
		}
	})
}

func TestScreenRefuses(t *testing.T) {
	s := newScreen(3, func() memberTable { return nil })
	part := func(parts ...[]byte) []byte {
		b := []byte{msgCompound, byte(len(parts))}
		for _, p := range parts {
			b = binary.BigEndian.AppendUint16(b, uint16(len(p)))
		}
		return append(b, slices.Concat(parts...)...)
	}
	good := deadMessage("p1", 7)
	if err := s.packet(good); err != nil { // the first that is heard of p1
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"one":               good,
		"several":           part(good, append([]byte{msgUser}, "anything"...), good),
		"of a known member": deadMessage("p1", 7+incarnationSlack),
	} {
		if err := s.packet(b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, b := range map[string][]byte{
		"nothing":               {},
		"compressed":            {9, 0x81},
		"compressed in a part":  part([]byte{9, 0x81}),
		"a compound in another": part(part(good)),
		"encrypted":             {10, 1},
		"a list of members":     promise(1, 0)[len(plainHeader):],
		"half of it":            good[:len(good)-3],
		"a part beyond the end": part(good)[:20],
		"wrong checksum":        append([]byte{msgChecksummed, 0, 0, 0, 0}, good...),
		"a field of another":    bytes.Replace(good, []byte("From"), []byte("Form"), 1),
		"a long name":           {msgDead, 0x81, 0xa4, 'N', 'o', 'd', 'e', 0xd9, 64},
		"4 GiB of a name":       {msgDead, 0x81, 0xa4, 'N', 'o', 'd', 'e', 0xdb, 0xff, 0xff, 0xff, 0xff},
		"no incarnation":        deadMessage("p1", 7+60*incarnationRate+incarnationSlack),
		"no name":               deadMessage("", 1),
	} {
		if err := s.packet(b); err == nil {
			t.Errorf("%s: let through", name)
		}
	}
	for _, name := range []string{"p2", "p3"} {
		if err := s.packet(deadMessage(name, 0)); err != nil {
			t.Error(err)
		}
	}
	if err := s.packet(deadMessage("p4", 0)); err == nil {
		t.Error("a fourth member of three")
	}
}

// FuzzScreen: whatever arrives is screened without a panic, and a stream takes memory in
// proportion to what it sends.
func FuzzScreen(f *testing.F) {
	f.Add(deadMessage("p1", 7))
	f.Add(promise(1, 0)[len(plainHeader):])
	f.Fuzz(func(t *testing.T, b []byte) {
		s := newScreen(100, func() memberTable { return nil })
		s.packet(b)
		near, far := net.Pipe()
		defer far.Close()
		go func() { far.Write(plainHeader); far.Write(b); far.Close() }()
		c := s.stream(near, true)
		out := make([]byte, 64)
		for range 2*len(b) + 8 {
			if _, err := c.Read(out); err != nil {
				break
			}
		}
		if got, most := cap(c.(*screenedConn).message.b), 2*len(b)+2<<10; got > most {
			t.Errorf("%d bytes were read into a buffer of %d", len(b), got)
		}
		c.Close()
		if s.used != 0 || len(s.perHost) != 0 {
			t.Errorf("%d bytes stay claimed", s.used)
		}
	})
}
