package opening

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/memnet"
)

// byByte reads a byte of each connection.
var byByte = Opening{Wait: 30 * time.Second, Read: func(c net.Conn) (net.Conn, error) {
	_, err := io.ReadFull(c, make([]byte, 1))
	return c, err
}}

// Connections that send nothing are closed with the listener.
func TestSilentConnections(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := Listen(inner, byByte)
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept = %v", err)
	}
	conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the silent connection: %v, want it closed", err)
	}
}

// A connection that sends nothing is closed after a while, one that ends at once is closed at once, and one that sends
// a byte is not closed: its rest is read.
func TestSilentConnectionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(1)
		inner, err := network.Host("10.0.0.1").Listen("10.0.0.1:1")
		if err != nil {
			t.Fatal(err)
		}
		l := Listen(inner, byByte)
		accepted := make(chan net.Conn, 1)
		go func() {
			c, _ := l.Accept()
			accepted <- c
		}()
		dial := func() net.Conn {
			c, err := network.Host("10.0.0.2").Dial(t.Context(), "10.0.0.1:1")
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		silent, speaking := dial(), dial()
		if _, err := speaking.Write([]byte{'G', 'E', 'T'}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		silent.SetReadDeadline(began.Add(10 * byByte.Wait))
		if _, err := silent.Read(make([]byte, 1)); err != io.EOF || time.Since(began) > 2*byByte.Wait {
			t.Errorf("the silent connection: %v after %v, want its end after %v", err, time.Since(began), byByte.Wait)
		}
		c := <-accepted
		if k, err := c.Read(make([]byte, 9)); k != 2 || err != nil {
			t.Errorf("the speaking connection: %d, %v", k, err)
		}
		for _, c := range []net.Conn{silent, speaking, c} {
			c.Close()
		}
		l.Close()
		time.Sleep(time.Minute) // what is on the way arrives
	})
}
