package memnet

import (
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
)

// Conditions describe a link, in one direction. The zero Conditions are a perfect link.
type Conditions struct {
	Loss      float64       // probability that a packet is dropped, 0 to 1
	Duplicate float64       // probability that a packet arrives twice, 0 to 1
	Latency   time.Duration // of packets, of stream data and of connecting
	Jitter    time.Duration // added to a packet's latency, uniformly from 0; it reorders packets

	// Of streams. All their bytes arrive, and in order.

	// probability that the data of one Write is lost and arrives 200 ms later, or 400 ms more if it is lost again, and
	// so on; 0 to 0.9
	Resend float64
	Rate   int64 // bytes per second that one stream carries; 0 = unlimited
}

// Traffic counts packets since the network was created.
type Traffic struct {
	Packets int64 // given to WriteTo
	Bytes   int64 // in them
	Lost    int64 // by Conditions.Loss or a cut link
	Dropped int64 // because no socket listened or its queue was full
}

// Network connects hosts.
type Network struct {
	mu         sync.Mutex // guards everything, including hosts, sockets and streams
	rng        *rand.Rand
	conditions Conditions          // of links without conditions of their own
	links      map[link]Conditions // conditions of single links
	resets     map[link]int64      // see ResetAfter
	hosts      map[netip.Addr]*Host
	cut        map[link]bool
	changed    chan struct{} // closed when links or hosts change
	traffic    Traffic
}

type link struct{ from, to netip.Addr }

func linkOf(from, to string) link { return link{netip.MustParseAddr(from), netip.MustParseAddr(to)} }

// New returns a perfect network without hosts. The seed determines which packets are lost under
// [Conditions].
func New(seed uint64) *Network {
	return &Network{
		rng:     rand.New(rand.NewPCG(seed, 0x6d656d6e6574)),
		hosts:   make(map[netip.Addr]*Host),
		links:   make(map[link]Conditions),
		resets:  make(map[link]int64),
		cut:     make(map[link]bool),
		changed: make(chan struct{}),
	}
}

// Host returns the host at ip, which the first call creates. It panics if ip is not an IP address.
func (n *Network) Host(ip string) *Host {
	addr := netip.MustParseAddr(ip)
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.hosts[addr]
	if h == nil {
		h = &Host{
			net:       n,
			addr:      addr,
			nextPort:  firstEphemeral,
			packets:   make(map[uint16]*packetConn),
			listeners: make(map[uint16]*listener),
			conns:     make(map[*conn]struct{}),
		}
		n.hosts[addr] = h
	}
	return h
}

// Traffic returns the counters.
func (n *Network) Traffic() Traffic {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.traffic
}

// Host is one address on a network.
type Host struct {
	net  *Network
	addr netip.Addr

	nextPort  uint16
	packets   map[uint16]*packetConn
	listeners map[uint16]*listener
	conns     map[*conn]struct{}
	frozen    bool
}

// IP returns the host's address.
func (h *Host) IP() string { return h.addr.String() }

// Open returns the number of open sockets of the host.
func (h *Host) Open() int {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	return len(h.packets) + len(h.listeners) + len(h.conns)
}

// port returns the port to listen on for an address. It is called with net.mu held.
func (h *Host) port(network, addr string, taken func(uint16) bool) (uint16, error) {
	host, service, err := net.SplitHostPort(addr)
	if err != nil {
		return 0, err
	}
	if host != "" {
		ip, err := netip.ParseAddr(host)
		if err != nil {
			return 0, err
		}
		if ip != h.addr && !ip.IsUnspecified() {
			return 0, os.NewSyscallError("bind", syscall.EADDRNOTAVAIL)
		}
	}
	port, err := net.LookupPort(network, service)
	if err != nil {
		return 0, err
	}
	if port == 0 {
		return h.ephemeral(taken)
	}
	if taken(uint16(port)) {
		return 0, os.NewSyscallError("bind", syscall.EADDRINUSE)
	}
	return uint16(port), nil
}

const firstEphemeral = 49152

// ephemeral returns a free port. It is called with net.mu held.
func (h *Host) ephemeral(taken func(uint16) bool) (uint16, error) {
	for range 1<<16 - firstEphemeral {
		p := h.nextPort
		if h.nextPort++; h.nextPort == 0 {
			h.nextPort = firstEphemeral
		}
		if !taken(p) {
			return p, nil
		}
	}
	return 0, errors.New("memnet: no free port")
}

func opError(op, network, addr string, err error) error {
	return &net.OpError{Op: op, Net: network, Addr: textAddr{network, addr}, Err: err}
}

// textAddr is an address as the caller wrote it.
type textAddr struct{ network, addr string }

func (a textAddr) Network() string { return a.network }
func (a textAddr) String() string  { return a.addr }

// A deadline wakes a condition variable, whose lock guards it.
type deadline struct {
	expired bool
	timer   *time.Timer
}

func (d *deadline) set(t time.Time, ready *sync.Cond) {
	d.stop()
	d.expired = !t.IsZero() && !t.After(time.Now())
	if d.expired {
		ready.Broadcast()
	} else if !t.IsZero() {
		var timer *time.Timer
		timer = time.AfterFunc(time.Until(t), func() {
			ready.L.Lock()
			defer ready.L.Unlock()
			if d.timer == timer { // it has not been set again
				d.expired = true
				ready.Broadcast()
			}
		})
		d.timer = timer
	}
}

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}
