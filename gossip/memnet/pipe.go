package memnet

import (
	"cmp"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// A pipe is one direction of a stream: bytes on their way, each chunk readable
// once it has arrived.
type pipe struct {
	net  *Network
	link link

	waiter
	chunks   []chunk
	size     int  // bytes in chunks
	finished bool // the writer is done; the end of the stream follows the chunks
	end      time.Time
	readErr  error // what reads return, whatever is queued
	writeErr error // what writes return
	readBy   deadline
	writeBy  deadline
	alarm    *time.Timer // wakes the reader when the first chunk arrives
	back     *pipe       // the other direction
	left     int64       // bytes until the stream is reset, if doomed
	doomed   bool
}

type chunk struct {
	data    []byte
	arrives time.Time
}

func newPipe(n *Network, l link) *pipe {
	p := &pipe{net: n, link: l}
	p.ready.L = &p.mu
	return p
}

func (p *pipe) write(b []byte) (int, error) {
	written := 0
	p.mu.Lock()
	defer p.mu.Unlock()
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
		case p.size < all && !p.net.frozen(p.link.from):
			n := p.allowed(min(len(b), all-p.size, piece))
			if n < 0 {
				p.mu.Unlock() // the other direction has a lock of its own
				p.reset()
				p.back.reset()
				p.mu.Lock()
				continue
			}
			p.chunks = append(p.chunks, chunk{append([]byte(nil), b[:n]...), p.arrival(n)})
			p.size += n
			written += n
			b = b[n:]
			p.ready.Broadcast()
			continue
		}
		p.ready.Wait()
	}
}

// allowed is how many of n bytes go before the stream is reset; -1 = now it is.
func (p *pipe) allowed(n int) int {
	if left, ok := p.net.takeReset(p.link); ok && (!p.doomed || left < p.left) {
		p.left, p.doomed = left, true
	}
	if !p.doomed {
		return n
	}
	if p.left == 0 {
		return -1
	}
	n = int(min(int64(n), p.left))
	p.left -= int64(n)
	return n
}

// arrival is when n bytes that are sent now have arrived: never before what was sent
// earlier, and after it by as long as the stream's rate makes it.
func (p *pipe) arrival(n int) time.Time {
	delay, each := p.net.delay(p.link, n)
	if t := time.Now().Add(delay); t.After(p.end) {
		p.end = t
	}
	p.end = p.end.Add(each)
	return p.end
}

func (p *pipe) read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.readErr != nil:
			return 0, p.readErr
		case p.readBy.expired:
			return 0, os.ErrDeadlineExceeded
		case len(b) == 0:
			return 0, nil
		}
		if p.arrived() {
			if len(p.chunks) == 0 {
				return 0, io.EOF
			}
			return p.take(b), nil
		}
		p.ready.Wait()
	}
}

// arrived reports whether the next chunk, or the end, is there to read. If it is
// still on its way it sees to it that the reader is woken in time.
func (p *pipe) arrived() bool {
	at := p.end
	if len(p.chunks) > 0 {
		at = p.chunks[0].arrives
	} else if !p.finished {
		return false
	}
	if p.net.isCut(p.link) || p.net.frozen(p.link.to) {
		return false
	}
	wait := time.Until(at)
	if wait <= 0 {
		return true
	}
	if p.alarm != nil {
		p.alarm.Stop()
	}
	p.alarm = time.AfterFunc(wait, p.wake)
	return false
}

func (p *pipe) take(b []byte) int {
	c := &p.chunks[0]
	n := copy(b, c.data)
	c.data = c.data[n:]
	if len(c.data) == 0 {
		p.chunks = p.chunks[1:]
	}
	p.size -= n
	p.ready.Broadcast()
	return n
}

// finish is the writer saying that nothing follows.
func (p *pipe) finish() {
	p.change(func() {
		if !p.finished {
			p.finished = true
			p.arrival(0)
		}
	})
}

// closeWriter makes further writes fail as those to a closed connection do.
func (p *pipe) closeWriter() {
	p.change(func() {
		p.writeErr = cmp.Or[error](p.writeErr, net.ErrClosed)
		p.writeBy.stop()
	})
}

// abandon is the end of the stream for its reader: reads and writes return those errors,
// unless they return others already, and what is under way is lost.
func (p *pipe) abandon(reads, writes error) {
	p.change(func() {
		p.readErr, p.writeErr = cmp.Or(p.readErr, reads), cmp.Or(p.writeErr, writes)
		p.chunks, p.size = nil, 0
		p.readBy.stop()
		if p.alarm != nil {
			p.alarm.Stop()
		}
	})
}

// reset makes both ends fail at once.
func (p *pipe) reset() { p.abandon(syscall.ECONNRESET, syscall.ECONNRESET) }

func (p *pipe) setReadDeadline(t time.Time) { p.change(func() { p.readBy.set(t, &p.ready) }) }

func (p *pipe) setWriteDeadline(t time.Time) { p.change(func() { p.writeBy.set(t, &p.ready) }) }

// A waiter is what readers and writers wait by.
type waiter struct {
	mu    sync.Mutex
	ready sync.Cond // of mu
}

// change makes a change that they may have waited for.
func (w *waiter) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	w.ready.Broadcast()
}

// wake has them look again.
func (w *waiter) wake() { w.change(func() {}) }
