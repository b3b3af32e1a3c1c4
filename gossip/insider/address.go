package insider

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// SRVName returns the name in an entry srv:name of Config.Join. If that consists of digits, the
// entry is a host called srv and a port.
func SRVName(entry string) (string, bool) {
	name, ok := strings.CutPrefix(entry, "srv:")
	return name, ok && (name == "" || strings.Trim(name, "0123456789") != "")
}

// CheckJoin returns an error if an entry of Config.Join is not valid.
func CheckJoin(entry string) error {
	if name, ok := SRVName(entry); ok {
		if name == "" || strings.ContainsAny(name, ": \t/@?#[]") {
			return fmt.Errorf("%q is not a name of SRV records: want srv:NAME without a port, such as "+
				"srv:_gossip._tcp.cache.example.com", name)
		}
		return nil
	}
	if err := CheckReachable(entry); err != nil {
		return err
	}
	host, _, _ := net.SplitHostPort(entry)
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		return errors.New("no host: want the address of another peer")
	}
	return nil
}

// CheckReachable returns an error if others cannot connect to addr, a host:port.
func CheckReachable(addr string) error {
	if err := CheckHostPort(addr); err != nil {
		return err
	}
	if _, port, _ := net.SplitHostPort(addr); strings.Trim(port, "0") == "" {
		return errors.New("port 0: nothing can be reached there: pass the address that the listener got")
	}
	return nil
}

// CheckHostPort returns an error if addr is not a host:port.
func CheckHostPort(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("port %q: want 0 to 65535", port)
	}
	return nil
}

// OwnAddress returns the address at which others most likely reach this machine: the one from which it reaches the
// first entry of join that is an ip:port (see Config.Join), and so of that one's family. If there is none: a private
// IPv4 address, otherwise a public one, otherwise an IPv6 address. It sends nothing.
func OwnAddress(join []string) (netip.Addr, error) {
	for _, entry := range join {
		to, err := netip.ParseAddrPort(entry)
		if err != nil || to.Addr().IsLoopback() {
			continue
		}
		if c, err := net.Dial("udp", to.String()); err == nil {
			defer c.Close()
			return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap().WithZone(""), nil
		}
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Addr{}, fmt.Errorf("no advertise address set, and the interfaces cannot be read: %w", err)
	}
	best, rank := netip.Addr{}, 0
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue
		}
		ip, r := p.Addr().Unmap(), 0
		switch {
		case ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsMulticast():
			continue
		case ip.Is4() && ip.IsPrivate():
			r = 4
		case ip.Is4():
			r = 3
		case ip.IsPrivate():
			r = 2
		default:
			r = 1
		}
		if r > rank {
			best, rank = ip, r
		}
	}
	if rank == 0 {
		return netip.Addr{}, errors.New("bound to all addresses, but this machine has none that others could reach: " +
			"set the advertise address")
	}
	return best, nil
}
