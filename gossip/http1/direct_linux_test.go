//go:build !race

package http1

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestDirect: a connection that reads and writes without the scheduler does what net's does, of any length, by any number of
// goroutines, until its deadline, its end and its close.
func TestDirect(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	pair := func() (net.Conn, net.Conn) {
		t.Helper()
		a, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		b, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Close(); b.Close() })
		return Direct(a), Direct(b)
	}
	a, b := pair()
	if _, ok := a.(*direct); !ok {
		t.Fatalf("Direct of a connection by TCP is a %T", a)
	}
	if n, err := a.Read(nil); n != 0 || err != nil {
		t.Errorf("Read of nothing = %d, %v", n, err)
	}
	if n, err := a.Write(nil); n != 0 || err != nil {
		t.Errorf("Write of nothing = %d, %v", n, err)
	}
	for _, size := range []int{1, 4 << 10, mostDirect, mostDirect + 1, 8 << 20} {
		sent := bytes.Repeat([]byte{byte(size), byte(size >> 8), 7}, size/3+1)[:size]
		go func() {
			for rest := sent; len(rest) > 0; {
				n, err := a.Write(rest[:min(len(rest), max(mostDirect, size/2))])
				if err != nil {
					t.Errorf("Write of %d bytes = %v", size, err)
					return
				}
				rest = rest[n:]
			}
		}()
		got := make([]byte, size)
		if _, err := io.ReadFull(b, got); err != nil || !bytes.Equal(got, sent) {
			t.Errorf("%d bytes do not arrive as they were sent: %v", size, err)
		}
	}
	b.SetDeadline(time.Now().Add(time.Second / 100))
	if n, err := b.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || !strings.HasPrefix(err.Error(), "read tcp ") {
		t.Errorf("Read after the deadline = %d, %v", n, err)
	}
	written := 0
	for err = nil; err == nil; { // nobody reads
		var n int
		n, err = b.Write(make([]byte, mostDirect))
		written += n
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) || !strings.HasPrefix(err.Error(), "write tcp ") {
		t.Errorf("Write after the deadline = %v", err)
	}
	b.SetDeadline(time.Time{})
	b.Close()
	if n, err := io.Copy(io.Discard, a); n != int64(written) || err != nil {
		t.Errorf("%d bytes, %v after a write that was late, want %d", n, err, written)
	}
	if n, err := a.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("Read at the end = %d, %v", n, err)
	}

	a, _ = pair()
	ended := make(chan error, 4)
	for range cap(ended) {
		go func() {
			_, err := a.Read(make([]byte, 1))
			ended <- err
		}()
	}
	time.Sleep(time.Second / 100)
	a.Close()
	for range cap(ended) {
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("Read of a closed connection = %v", err)
		}
	}
	a, b = pair()
	b.(*direct).SetLinger(0)
	b.Close()
	if _, err := a.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) || !strings.HasPrefix(err.Error(), "read tcp ") {
		t.Errorf("Read after a reset = %v", err)
	}
	if one, other := net.Pipe(); Direct(one) != one {
		t.Error("Direct of what is no TCP is not that")
	} else {
		other.Close()
	}
	in, out := make([]byte, 8), []byte("8 bytes.")
	a, b = pair()
	if n := testing.AllocsPerRun(100, func() { a.Write(out); b.Read(in) }); n > 0 {
		t.Errorf("a write and a read allocate %v times", n)
	}
}
