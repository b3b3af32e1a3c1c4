package conn

import (
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// sendBlocks writes what is to be sent of the header, and after it the body.
func (c *Conn) sendBlocks(body Blocks) (_ int64, err error) {
	defer body.Park()
	head := c.head
	c.head = c.head[:0]
	total := int64(0) // of the body
	_, err = c.patiently(-1, func(int64) (int64, error) {
		left := len(head)
		n, err := c.sendSome(&head, body)
		total += n
		return n + int64(left-len(head)), err // progress is either
	})
	return total, err
}

// unsent returns how many bytes the other end has not confirmed.
func (c *Conn) unsent() (n int) {
	if c.raw != nil {
		c.raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCOUTQ) })
	}
	return n
}

// sendSome is sendBlocks until the deadline. It drops from head what is sent of it.
func (c *Conn) sendSome(head *[]byte, body Blocks) (done int64, err error) {
	refused := false // the kernel could not send from the file
	failure := c.raw.Write(func(to uintptr) bool {
		for { // each round sends at least a byte, was interrupted, or is the last
			if spans, ok := body.(Spans); ok && len(*head) == 0 && !refused {
				if f, off, n := spans.Span(); n > 0 {
					k, fault := unix.Sendfile(int(to), int(f.Fd()), &off, int(n))
					switch {
					case fault == unix.EINTR:
					case fault == unix.EAGAIN:
						return false // until the client has taken some
					case fault != nil || k == 0:
						spans.Distrust()
						refused = true // whichever end is at fault, it shows below
					default:
						body.Advance(k)
						done += int64(k)
					}
					continue
				}
			}
			b, flags := *head, unix.MSG_NOSIGNAL|unix.MSG_MORE // in one packet with what follows
			if len(*head) == 0 {
				if b, err = body.Next(); err != nil {
					return true
				}
				flags = unix.MSG_NOSIGNAL
			}
			var k int
			k, err = unix.SendmsgN(int(to), b, nil, nil, flags)
			switch {
			case err == unix.EINTR:
				continue
			case err == unix.EAGAIN:
				body.Park()
				return false // until the client has taken some
			case err != nil:
				err = &net.OpError{Op: "write", Net: "tcp", Addr: c.RemoteAddr(), Err: os.NewSyscallError("sendmsg", err)}
				return true
			case len(*head) > 0:
				*head = (*head)[k:]
			default:
				body.Advance(k)
				done += int64(k)
			}
		}
	})
	if failure != nil {
		return done, failure
	}
	if err == io.EOF {
		err = nil
	}
	return done, err
}
