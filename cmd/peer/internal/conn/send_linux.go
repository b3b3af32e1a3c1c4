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
func (c *Conn) sendSpan(body span, _ io.Reader) (done int64, err error) {
	if err := c.sendHeld(); err != nil {
		return 0, err
	}
	f, off, n := body.Span()
	from := int(f.Fd())
	failure := c.raw.Write(func(to uintptr) bool {
		for done < n {
			at := off + done
			var k int
			k, err = unix.Sendfile(int(to), from, &at, int(min(n-done, 1<<30)))
			switch {
			case err == unix.EINTR:
				continue
			case err == unix.EAGAIN:
				err = nil
				return false
			case err != nil:
				err = &net.OpError{Op: "sendfile", Net: "tcp", Addr: c.RemoteAddr(), Err: os.NewSyscallError("sendfile", err)}
				return true
			case k == 0:
				err = io.ErrUnexpectedEOF // the file is shorter than it was
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

// sendHeld writes what is kept back and lets it wait for what follows, so that
// both leave in one packet.
func (c *Conn) sendHeld() error {
	c.holding = false
	if len(c.held) == 0 {
		return nil
	}
	rest := c.held
	c.held = c.held[:0]
	var err error
	failure := c.raw.Write(func(to uintptr) bool {
		for len(rest) > 0 {
			var k int
			k, err = unix.SendmsgN(int(to), rest, nil, nil, unix.MSG_MORE|unix.MSG_NOSIGNAL)
			switch {
			case err == unix.EINTR:
				continue
			case err == unix.EAGAIN:
				err = nil
				return false
			case err != nil:
				err = &net.OpError{Op: "write", Net: "tcp", Addr: c.RemoteAddr(), Err: os.NewSyscallError("sendmsg", err)}
				return true
			}
			rest = rest[k:]
		}
		return true
	})
	if err == nil {
		err = failure
	}
	return err
}
