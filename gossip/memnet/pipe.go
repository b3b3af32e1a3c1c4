package memnet

import (
	"bytes"
	"cmp"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
)

// window is how many bytes a stream holds in one direction before its writer waits.
const window = 256 << 10

// A pipe is one direction of a stream. It holds the bytes on their way in chunks, which can be read when
// they have arrived. Its methods are called with net.mu held.
type pipe struct {
	net  *Network
	link link

	ready    sync.Cond // of net.mu
	chunks   []chunk
	size     int       // bytes in chunks
	finished bool      // the writer is done; the end of the stream follows the chunks
	end      time.Time // arrival of the last byte
	readErr  error     // returned by reads, whatever is queued
	writeErr error     // returned by writes
	readBy   deadline
	writeBy  deadline
	alarm    *time.Timer // wakes the reader when the first chunk arrives
	back     *pipe       // the other direction
	left     int64       // bytes until the stream is reset; -1 if it is not
}

type chunk struct {
	data    []byte
	arrives time.Time
}

func newPipe(n *Network, l link) *pipe {
	return &pipe{net: n, link: l, ready: sync.Cond{L: &n.mu}, left: -1}
}

func (p *pipe) write(b []byte) (written int, err error) {
	for {
		piece, all := p.net.room(p.link)
		switch {
		case p.writeErr != nil:
			return written, p.writeErr
		case p.finished:
			return written, syscall.EPIPE
		case p.writeBy.expired:
			return written, os.ErrDeadlineExceeded
		case len(b) == 0:
			return written, nil
		case p.size >= all || p.net.frozen(p.link.from):
			p.ready.Wait()
			continue
		}
		n := min(len(b), all-p.size, piece)
		if left, ok := p.net.resets[p.link]; ok {
			delete(p.net.resets, p.link)
			if p.left < 0 || left < p.left {
				p.left = left
			}
		}
		switch {
		case p.left == 0:
			p.reset()
			p.back.reset()
			continue
		case p.left > 0:
			n = int(min(int64(n), p.left))
			p.left -= int64(n)
		}
		p.chunks = append(p.chunks, chunk{bytes.Clone(b[:n]), p.arrival(n)})
		p.size += n
		written += n
		b = b[n:]
		p.ready.Broadcast()
	}
}

// arrival returns when n bytes that are sent now will have arrived: never before earlier bytes, and as
// long after them as the stream's rate requires.
func (p *pipe) arrival(n int) time.Time {
	c := p.net.conditionsOf(p.link)
	delay := c.Latency
	for again := 0; again < mostResends && c.Resend > 0 && p.net.rng.Float64() < c.Resend; again++ {
		delay += firstResend << again
	}
	if t := time.Now().Add(delay); t.After(p.end) {
		p.end = t
	}
	if c.Rate > 0 {
		p.end = p.end.Add(time.Duration(int64(n) * int64(time.Second) / c.Rate))
	}
	return p.end
}

func (p *pipe) read(b []byte) (int, error) {
	for {
		switch {
		case p.readErr != nil:
			return 0, p.readErr
		case p.readBy.expired:
			return 0, os.ErrDeadlineExceeded
		case len(b) == 0:
			return 0, nil
		case !p.arrived():
			p.ready.Wait()
			continue
		case len(p.chunks) == 0:
			return 0, io.EOF
		}
		c := &p.chunks[0]
		n := copy(b, c.data)
		if c.data = c.data[n:]; len(c.data) == 0 {
			p.chunks = p.chunks[1:]
		}
		p.size -= n
		p.ready.Broadcast()
		return n, nil
	}
}

// arrived reports whether the next chunk, or the end, can be read. If it is on its way, arrived sets a
// timer that wakes the reader in time.
func (p *pipe) arrived() bool {
	at := p.end
	if len(p.chunks) > 0 {
		at = p.chunks[0].arrives
	} else if !p.finished {
		return false
	}
	if p.net.cut[p.link] || p.net.frozen(p.link.to) {
		return false
	}
	wait := time.Until(at)
	if wait <= 0 {
		return true
	}
	if p.alarm != nil {
		p.alarm.Stop()
	}
	p.alarm = time.AfterFunc(wait, func() {
		p.net.mu.Lock()
		defer p.net.mu.Unlock()
		p.ready.Broadcast()
	})
	return false
}

// finish ends the stream after the bytes written so far.
func (p *pipe) finish() {
	if !p.finished {
		p.finished = true
		p.arrival(0)
	}
	p.ready.Broadcast()
}

// closeWriter makes further writes fail, as on a closed connection.
func (p *pipe) closeWriter() {
	p.writeErr = cmp.Or[error](p.writeErr, net.ErrClosed)
	p.writeBy.stop()
	p.ready.Broadcast()
}

// abandon ends the stream for its reader: reads and writes return these errors, unless they return
// others already. Bytes on their way are lost.
func (p *pipe) abandon(reads, writes error) {
	p.readErr, p.writeErr = cmp.Or(p.readErr, reads), cmp.Or(p.writeErr, writes)
	p.chunks, p.size = nil, 0
	p.readBy.stop()
	if p.alarm != nil {
		p.alarm.Stop()
	}
	p.ready.Broadcast()
}

// reset makes both ends fail at once.
func (p *pipe) reset() { p.abandon(syscall.ECONNRESET, syscall.ECONNRESET) }

// frozen is called with n.mu held.
func (n *Network) frozen(a netip.Addr) bool {
	h := n.hosts[a]
	return h != nil && h.frozen
}

// conditionsOf is called with n.mu held.
func (n *Network) conditionsOf(l link) Conditions {
	if c, ok := n.links[l]; ok {
		return c
	}
	return n.conditions
}

// room returns how many bytes of a stream arrive together, and how many may be on their way. Under a
// rate these are the bytes of a tenth of a second and of a second, so that the rate ends soon after it
// is lifted. room is called with n.mu held.
func (n *Network) room(l link) (piece, all int) {
	if c := n.conditionsOf(l); c.Rate > 0 {
		return int(c.Rate/10) + 1, int(min(c.Rate, window))
	}
	return window, window
}
