package memnet

import (
	"errors"
	"io"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestRateAndResendDelayStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(1)
		client, server := stream(t, n)
		n.SetLink("10.0.0.1", "10.0.0.2", Conditions{Latency: 10 * time.Millisecond, Rate: 1000})
		start := time.Now()
		go func() {
			client.Write(make([]byte, 500))
			client.Write(make([]byte, 1500))
		}()
		if _, err := io.ReadFull(server, make([]byte, 2000)); err != nil || time.Since(start) != 2010*time.Millisecond {
			t.Errorf("2000 bytes arrived with %v after %v, want 2.01s", err, time.Since(start))
		}
		start = time.Now()
		server.Write([]byte("x")) // the other way is as it was
		if _, err := client.Read(make([]byte, 1)); err != nil || time.Since(start) != 0 {
			t.Errorf("the other way took %v, %v", time.Since(start), err)
		}
		go client.Write(make([]byte, 100_000))
		io.ReadFull(server, make([]byte, 500))
		n.SetLink("10.0.0.1", "10.0.0.2", Conditions{})
		start = time.Now()
		if _, err := io.ReadFull(server, make([]byte, 99_500)); err != nil || time.Since(start) > time.Second {
			t.Errorf("the rest arrived with %v %v after the rate was lifted, want a second at most", err, time.Since(start))
		}
		n.SetLink("10.0.0.1", "10.0.0.2", Conditions{Resend: 1})
		start = time.Now()
		client.Write([]byte("x"))
		server.Read(make([]byte, 1))
		if got, want := time.Since(start), firstResend<<mostResends-firstResend; got != want {
			t.Errorf("data lost %d times arrived after %v, want %v", mostResends, got, want)
		}
	})
}

func TestResetAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(1)
		client, server := stream(t, n)
		n.ResetAfter("10.0.0.1", "10.0.0.2", 10)
		client.Write([]byte("12345"))
		if k, err := server.Read(make([]byte, 9)); k != 5 || err != nil {
			t.Errorf("Read = %d, %v before the reset", k, err)
		}
		if k, err := client.Write([]byte("1234567")); k != 5 || !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("Write = %d, %v, want 5 and a reset", k, err)
		}
		for _, c := range []io.Reader{client, server} {
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("Read after the reset = %v", err)
			}
		}
	})
}

// TestResetSooner: a second reset that happens before the first one.
func TestResetSooner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(1)
		client, _ := stream(t, n)
		n.ResetAfter("10.0.0.1", "10.0.0.2", 10)
		client.Write([]byte("12345"))
		n.ResetAfter("10.0.0.1", "10.0.0.2", 0)
		if k, err := client.Write([]byte("6")); k != 0 || !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("Write = %d, %v, want a reset", k, err)
		}
	})
}

func TestFreeze(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(1)
		client, server := stream(t, n)
		udp, _ := n.Host("10.0.0.1").ListenPacket(":1")
		frozen, _ := n.Host("10.0.0.2").ListenPacket(":2")
		l, _ := n.Host("10.0.0.2").Listen(":81")
		n.Host("10.0.0.2").Freeze()
		start := time.Now()
		time.AfterFunc(time.Minute, n.Host("10.0.0.2").Thaw)

		client.Write([]byte("a"))
		udp.WriteTo([]byte("b"), frozen.LocalAddr())
		frozen.WriteTo([]byte("lost"), udp.LocalAddr())
		if _, err := n.Host("10.0.0.1").Dial(t.Context(), "10.0.0.2:81"); err != nil || time.Since(start) != 0 {
			t.Errorf("Dial = %v after %v, want a connection in the backlog", err, time.Since(start))
		}
		for name, wait := range map[string]func(){
			"Read":     func() { server.Read(make([]byte, 1)) },
			"Write":    func() { server.Write([]byte("c")) },
			"ReadFrom": func() { frozen.ReadFrom(make([]byte, 1)) },
			"Accept":   func() { l.Accept() },
			"Dial":     func() { n.Host("10.0.0.2").Dial(t.Context(), "10.0.0.1:1") },
		} {
			go func() {
				wait()
				if time.Since(start) != time.Minute {
					t.Errorf("%s of a frozen host took %v, want 1m0s", name, time.Since(start))
				}
			}()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n.Traffic().Lost != 1 {
			t.Errorf("%d packets lost, want that of the frozen host", n.Traffic().Lost)
		}
	})
}
