package memnet

import (
	"slices"
	"time"
)

const (
	firstResend = 200 * time.Millisecond // before lost stream data is sent again, doubled each time
	mostResends = 6
)

// SetConditions applies to packets and stream data sent from now on, on every link
// that [Network.SetLink] was not called for.
func (n *Network) SetConditions(c Conditions) {
	n.mu.Lock()
	n.conditions = c
	n.mu.Unlock()
}

// SetLink gives the link from one host to another, one way, conditions of its own in
// place of those of [Network.SetConditions]. It panics if one is not an IP address.
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

// ResetAfter breaks one stream that carries data from one host to another: the next one
// that does, after this many more bytes; 0 = before the first. If it is called twice and
// both calls meet the same stream, the sooner break happens. Bytes on their way are lost, as with a
// reset. It panics if one is not an IP address.
func (n *Network) ResetAfter(from, to string, bytes int64) {
	n.mu.Lock()
	n.resets[linkOf(from, to)] = bytes
	n.mu.Unlock()
}

// Freeze stops the host as SIGSTOP stops a process, seen from the network: data for it
// waits in buffers until these are full; connections to it are made and not accepted;
// what it sends on streams waits, and its packets are lost. Unlike a stopped process it
// continues to compute, and its timers run. [Host.Thaw] and [Host.Kill] end it.
func (h *Host) Freeze() { h.net.changeLinks(func() { h.frozen = true }) }

// Thaw lets a frozen host continue.
func (h *Host) Thaw() { h.net.changeLinks(func() { h.frozen = false }) }

// Kill closes every socket of the host at once, as the death of a process does:
// those connected to it read a reset, and new connections are refused until
// something listens again.
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

// changeLinks makes a change and wakes everybody who may wait for a link.
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
