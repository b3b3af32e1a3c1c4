package memnet

import (
	"slices"
	"time"
)

const (
	firstResend = 200 * time.Millisecond // before lost stream data is resent, doubled each time
	mostResends = 6
)

// SetConditions sets the conditions of all links without conditions of their own
// ([Network.SetLink]), for packets and stream data sent from now on.
func (n *Network) SetConditions(c Conditions) {
	n.mu.Lock()
	n.conditions = c
	n.mu.Unlock()
}

// SetLink gives the link from one host to another, one way, conditions of its own instead of those of
// [Network.SetConditions]. It panics if one is not an IP address.
func (n *Network) SetLink(from, to string, c Conditions) {
	n.mu.Lock()
	n.links[linkOf(from, to)] = c
	n.mu.Unlock()
}

// Cut stops everything from one host to another, one way, until [Network.Heal].
// Streams stall; packets are lost. It panics if one is not an IP address.
func (n *Network) Cut(from, to string) {
	n.changeLinks(func() { n.cut[linkOf(from, to)] = true })
}

// Partition cuts every link, both ways, between hosts of different groups, until
// [Network.Heal]. It panics if one is not an IP address.
func (n *Network) Partition(groups ...[]string) {
	n.changeLinks(func() {
		for i, a := range groups {
			for _, b := range slices.Concat(groups[:i], groups[i+1:]) {
				for _, from := range a {
					for _, to := range b {
						n.cut[linkOf(from, to)] = true
					}
				}
			}
		}
	})
}

// Heal undoes every [Network.Cut] and [Network.Partition].
func (n *Network) Heal() { n.changeLinks(func() { clear(n.cut) }) }

// ResetAfter resets one stream from one host to another: the next one that sends data, after this many
// more bytes (0 means before the first). If two calls apply to the same stream, the earlier reset
// happens. Bytes on their way are lost. It panics if one is not an IP address.
func (n *Network) ResetAfter(from, to string, bytes int64) {
	n.mu.Lock()
	n.resets[linkOf(from, to)] = bytes
	n.mu.Unlock()
}

// Freeze makes the host look like a process stopped by SIGSTOP, seen from the network: data for it
// waits in buffers until these are full; connections to it succeed but are not accepted; its stream
// writes wait, and its packets are lost. Unlike a stopped process, its code and timers continue to run.
// [Host.Thaw] and [Host.Kill] end that.
func (h *Host) Freeze() { h.net.changeLinks(func() { h.frozen = true }) }

// Thaw lets a frozen host continue.
func (h *Host) Thaw() { h.net.changeLinks(func() { h.frozen = false }) }

// Kill closes every socket of the host at once, as the death of a process does: its peers read a reset,
// and new connections are refused until the host listens again.
func (h *Host) Kill() {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	h.frozen = false
	for _, p := range h.packets {
		p.close()
	}
	for _, l := range h.listeners {
		l.close()
	}
	for c := range h.conns {
		c.reset()
	}
}

// changeLinks makes a change and wakes all goroutines that may wait for a link.
func (n *Network) changeLinks(change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change()
	close(n.changed)
	n.changed = make(chan struct{})
	for _, h := range n.hosts {
		for _, p := range h.packets {
			p.ready.Broadcast()
		}
		for _, l := range h.listeners {
			l.ready.Broadcast()
		}
		for c := range h.conns {
			c.in.ready.Broadcast()
			c.out.ready.Broadcast()
		}
	}
}
