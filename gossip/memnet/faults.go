package memnet

import (
	"net/netip"
	"time"
)

const (
	firstResend = 200 * time.Millisecond // before what was lost of a stream is sent again, doubled each time
	mostResends = 6
)

// SetLink gives the link from one host to another, one way, conditions of its own in
// place of those of [Network.SetConditions]. It panics if one is not an IP address.
func (n *Network) SetLink(from, to string, c Conditions) {
	n.mu.Lock()
	n.links[link{netip.MustParseAddr(from), netip.MustParseAddr(to)}] = c
	n.mu.Unlock()
}

// ResetAfter breaks one stream that carries data from one host to another: the next to
// do so, once it has carried so many bytes more; 0 = before it carries one. Of two that
// meet the same stream the sooner holds. Bytes on their way are lost, as with a reset. It
// panics if one is not an IP address.
func (n *Network) ResetAfter(from, to string, bytes int64) {
	n.mu.Lock()
	n.resets[link{netip.MustParseAddr(from), netip.MustParseAddr(to)}] = bytes
	n.mu.Unlock()
}

// Freeze stops the host as SIGSTOP stops a process, seen from the network: what comes
// waits in buffers, until these are full; connections to it are made and not accepted;
// what it sends on streams waits, and its packets are lost. Unlike a stopped process it
// goes on to compute, and its timers run. It ends with [Host.Thaw] or [Host.Kill].
func (h *Host) Freeze() { h.setFrozen(true) }

// Thaw lets a frozen host go on.
func (h *Host) Thaw() { h.setFrozen(false) }

// Open returns how many sockets of the host are open.
func (h *Host) Open() int {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	return len(h.packets) + len(h.listeners) + len(h.conns)
}

func (h *Host) setFrozen(frozen bool) {
	h.net.mu.Lock()
	h.frozen = frozen
	h.net.linksChanged()
}

func (n *Network) frozen(a netip.Addr) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.frozenLocked(a)
}

func (n *Network) frozenLocked(a netip.Addr) bool {
	h := n.hosts[a]
	return h != nil && h.frozen
}

func (n *Network) conditionsOf(l link) Conditions {
	if c, ok := n.links[l]; ok {
		return c
	}
	return n.conditions
}

// delay is after what time the first of some bytes of a stream arrives, and how much
// later the last of them.
func (n *Network) delay(l link, bytes int) (first, all time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.conditionsOf(l)
	first = c.Latency
	for again := 0; again < mostResends && c.Resend > 0 && n.rng.Float64() < c.Resend; again++ {
		first += firstResend << again
	}
	if c.Rate > 0 {
		all = time.Duration(int64(bytes) * int64(time.Second) / c.Rate)
	}
	return first, all
}

// room is how many bytes of a stream arrive together, and how many may be on their way:
// where a rate bounds them, what it carries in a tenth of a second, and in a whole one, so
// that it is soon forgotten when it ends.
func (n *Network) room(l link) (piece, all int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if c := n.conditionsOf(l); c.Rate > 0 {
		return int(c.Rate/10) + 1, int(min(c.Rate, window))
	}
	return window, window
}

func (n *Network) takeReset(l link) (bytes int64, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	bytes, ok = n.resets[l]
	delete(n.resets, l)
	return bytes, ok
}
