package conn

import (
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// A span is a part of a file that others may read at the same time: n bytes from
// offset off on.
type span interface {
	Span() (f *os.File, off, n int64)
}

// sendSpan writes what is kept back and has the kernel send a part of a file
// after it. The offset is its own, so that a file can be sent to many at once.
func (c *Conn) sendSpan(body span, _ io.Reader) (int64, error) {
	if err := c.sendHeld(); err != nil {
		return 0, err
	}
	f, off, n := body.Span()
	from := int(f.Fd())
	return c.sendBy("sendfile", n, func(to int, done int64) (int, error) {
		at := off + done
		return unix.Sendfile(to, from, &at, int(min(n-done, 1<<30)))
	})
}

// sendHeld writes what is kept back and lets it wait for what follows, so that
// both leave in one packet.
func (c *Conn) sendHeld() error {
	c.holding = false
	if len(c.held) == 0 {
		return nil
	}
	all := c.held
	c.held = c.held[:0]
	_, err := c.sendBy("sendmsg", int64(len(all)), func(to int, done int64) (int, error) {
		return unix.SendmsgN(to, all[done:], nil, nil, unix.MSG_MORE|unix.MSG_NOSIGNAL)
	})
	return err
}

// sendBy makes system calls, each of which sends some of what is left of n bytes,
// until all are sent. One that sends nothing has met the end of a file that is
// shorter than it was.
func (c *Conn) sendBy(name string, n int64, call func(to int, done int64) (int, error)) (int64, error) {
	return c.patiently(n, func(done int64) (int64, error) {
		return c.sendSome(name, n-done, func(to int, more int64) (int, error) { return call(to, done+more) })
	})
}

// sendSome is sendBy until the deadline.
func (c *Conn) sendSome(name string, n int64, call func(to int, done int64) (int, error)) (done int64, err error) {
	failure := c.raw.Write(func(to uintptr) bool {
		for done < n {
			var k int
			k, err = call(int(to), done)
			switch {
			case err == unix.EINTR:
				continue
			case err == unix.EAGAIN:
				err = nil
				return false // until the client has taken some
			case err != nil:
				err = &net.OpError{Op: "write", Net: "tcp", Addr: c.RemoteAddr(), Err: os.NewSyscallError(name, err)}
				return true
			case k == 0:
				err = io.ErrUnexpectedEOF
				return true
			}
			done += int64(k)
		}
		return true
	})
	if err == nil {
		err = failure
	}
	return done, err
}
