//go:build !race

package http1

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"unsafe"
)

// Direct returns a connection that reads and writes what c does without telling Go's scheduler of the system calls, if c
// is of TCP; otherwise c. They don't block, so another thread need not be ready to go on instead: Go's monitor, which
// sleeps where there is little to do, would be woken by each, and nap for a while.
func Direct(c net.Conn) net.Conn {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return c
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return c
	}
	d := &direct{TCPConn: tcp, raw: raw}
	d.in.by(syscall.SYS_READ, false)
	d.out.by(syscall.SYS_WRITE, true)
	return d
}

// mostDirect is the most bytes that are written so: to copy more may take a while, in which the thread could do nothing
// else.
const mostDirect = 64 << 10

type direct struct {
	*net.TCPConn
	raw     syscall.RawConn
	in, out transfer
}

// Read implements [net.Conn].
func (d *direct) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := d.in.do(d.raw.Read, p)
	if n == 0 && err == nil {
		return 0, io.EOF
	}
	return n, d.failed("read", err)
}

// Write implements [net.Conn].
func (d *direct) Write(p []byte) (int, error) {
	if len(p) == 0 || len(p) > mostDirect {
		return d.TCPConn.Write(p)
	}
	n, err := d.out.do(d.raw.Write, p)
	return n, d.failed("write", err)
}

// failed returns an error as net's own connections do.
func (d *direct) failed(op string, err error) error {
	switch e := err.(type) {
	case syscall.Errno:
		return &net.OpError{Op: op, Net: "tcp", Source: d.LocalAddr(), Addr: d.RemoteAddr(), Err: os.NewSyscallError(op, e)}
	case *net.OpError:
		e.Op = op // "raw-read" and the like
	}
	return err
}

// A transfer is one way of a connection. Its function is made once: each would be garbage.
type transfer struct {
	mu  sync.Mutex
	try func(fd uintptr) (done bool)
	p   []byte
	n   int // of these were transferred
	err error
}

// by sets the system call, and whether it is repeated until all is transferred.
func (t *transfer) by(call uintptr, all bool) {
	t.try = func(fd uintptr) bool {
		for { // each round transfers something, was interrupted, or is the last
			left := t.p[t.n:]
			n, _, err := syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(left))), uintptr(len(left)))
			switch {
			case err == syscall.EINTR:
				continue
			case err == syscall.EAGAIN:
				return false
			case err != 0:
				t.err = err
				return true
			}
			if t.n += int(n); !all || n == 0 || t.n == len(t.p) {
				return true
			}
		}
	}
}

// do transfers p, and waits for the connection where it must.
func (t *transfer) do(wait func(func(uintptr) bool) error, p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.p, t.n, t.err = p, 0, nil
	err := wait(t.try)
	t.p = nil
	if err == nil {
		err = t.err
	}
	return t.n, err
}
