package memnet

import (
	"errors"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Conditions are those of a link, one way. The zero Conditions are a perfect network.
type Conditions struct {
	Loss      float64       // probability that a packet is dropped, 0 to 1
	Duplicate float64       // probability that a packet arrives twice, 0 to 1
	Latency   time.Duration // of packets, of stream data and of connecting
	Jitter    time.Duration // added to a packet's latency, uniformly from 0: reorders

	// Of streams, whose bytes all arrive, and in order.
	Resend float64 // probability that what one Write sends is lost: it comes 200 ms later, or after twice that, and so on; 0 to 0.9
	Rate   int64   // bytes a second that one stream carries; 0 = no bound
}

// Traffic counts packets since the network was made.
type Traffic struct {
	Packets int64 // handed to WriteTo
	Bytes   int64 // in them
	Lost    int64 // by Conditions.Loss or a cut link
	Dropped int64 // because nobody listened or the receiver's queue was full
}

// Network connects hosts.
type Network struct {
	mu         sync.Mutex
	rng        *rand.Rand
	conditions Conditions          // of the links that have none of their own
	links      map[link]Conditions // of those that have
	resets     map[link]int64      // see ResetAfter
	hosts      map[netip.Addr]*Host
	cut        map[link]bool
	changed    chan struct{} // closed when links are cut or mended
	traffic    Traffic
}

type link struct{ from, to netip.Addr }

// New returns a perfect network without hosts. The seed decides which packets
// are lost once Conditions say so.
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

// Host returns the host at ip, and makes it at the first call. It panics if ip
// is not an IP address.
func (n *Network) Host(ip string) *Host {
	addr := netip.MustParseAddr(ip)
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.hosts[addr]
	if h == nil {
		h = &Host{
			net:       n,
			addr:      addr,
			nextPort:  49152,
			packets:   make(map[uint16]*PacketConn),
			listeners: make(map[uint16]*listener),
			conns:     make(map[*conn]struct{}),
		}
		n.hosts[addr] = h
	}
	return h
}

// SetConditions applies to packets and stream data sent from now on, on every link
// that [Network.SetLink] was not called for.
func (n *Network) SetConditions(c Conditions) {
	n.mu.Lock()
	n.conditions = c
	n.mu.Unlock()
}

// Traffic returns the counters.
func (n *Network) Traffic() Traffic {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.traffic
}

// Cut stops everything from one host to another, one way, until [Network.Heal].
// Streams stall; packets are lost. Like [Network.Host] it panics if one is not an IP
// address.
func (n *Network) Cut(from, to string) {
	n.mu.Lock()
	n.cut[link{netip.MustParseAddr(from), netip.MustParseAddr(to)}] = true
	n.linksChanged()
}

// Partition cuts every link, both ways, between hosts of different groups, until
// [Network.Heal]. It panics if one is not an IP address.
func (n *Network) Partition(groups ...[]string) {
	n.mu.Lock()
	for i, a := range groups {
		for j, b := range groups {
			if i == j {
				continue
			}
			for _, from := range a {
				for _, to := range b {
					n.cut[link{netip.MustParseAddr(from), netip.MustParseAddr(to)}] = true
				}
			}
		}
	}
	n.linksChanged()
}

// Heal undoes every [Network.Cut] and [Network.Partition].
func (n *Network) Heal() {
	n.mu.Lock()
	clear(n.cut)
	n.linksChanged()
}

// linksChanged wakes all who may wait for a link. It is called with n.mu held
// and releases it, since a connection takes its own lock before n.mu.
func (n *Network) linksChanged() {
	close(n.changed)
	n.changed = make(chan struct{})
	var wake []func()
	for _, h := range n.hosts {
		for c := range h.conns {
			wake = append(wake, c.in.wake, c.out.wake)
		}
		for _, l := range h.listeners {
			wake = append(wake, l.wake)
		}
		for _, p := range h.packets {
			wake = append(wake, p.wake)
		}
	}
	n.mu.Unlock()
	for _, f := range wake {
		f()
	}
}

func (n *Network) isCut(l link) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cut[l]
}

// Host is one address on a network.
type Host struct {
	net  *Network
	addr netip.Addr

	// Guarded by net.mu.
	nextPort  uint16
	packets   map[uint16]*PacketConn
	listeners map[uint16]*listener
	conns     map[*conn]struct{}
	frozen    bool
}

// IP returns the host's address.
func (h *Host) IP() string { return h.addr.String() }

// Kill closes every socket of the host at once, as the death of a process does:
// those connected to it read a reset, and new connections are refused until
// something listens again.
func (h *Host) Kill() {
	h.net.mu.Lock()
	h.frozen = false
	packets, listeners, conns := slices.Collect(maps.Values(h.packets)), slices.Collect(maps.Values(h.listeners)), slices.Collect(maps.Keys(h.conns))
	h.net.mu.Unlock()
	for _, p := range packets {
		p.Close()
	}
	for _, l := range listeners {
		l.Close()
	}
	for _, c := range conns {
		c.reset()
	}
}

// port resolves the address to listen on. It is called with net.mu held.
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
	if port != 0 {
		if taken(uint16(port)) {
			return 0, os.NewSyscallError("bind", syscall.EADDRINUSE)
		}
		return uint16(port), nil
	}
	return h.ephemeral(taken)
}

func (h *Host) ephemeral(taken func(uint16) bool) (uint16, error) {
	for range 65536 - 49152 {
		p := h.nextPort
		if h.nextPort++; h.nextPort == 0 {
			h.nextPort = 49152
		}
		if !taken(p) {
			return p, nil
		}
	}
	return 0, errors.New("memnet: no free port")
}

func (h *Host) opError(op, network, addr string, err error) error {
	return &net.OpError{Op: op, Net: network, Addr: textAddr{network, addr}, Err: err}
}

// textAddr is an address as somebody wrote it.
type textAddr struct{ network, addr string }

func (a textAddr) Network() string { return a.network }
func (a textAddr) String() string  { return a.addr }
