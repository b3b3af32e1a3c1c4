package memnet

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func stream(t *testing.T, n *Network) (client, server net.Conn) {
	t.Helper()
	l, err := n.Host("10.0.0.2").Listen(":80")
	if err != nil {
		t.Fatal(err)
	}
	client, err = n.Host("10.0.0.1").Dial(t.Context(), "10.0.0.2:80")
	if err != nil {
		t.Fatal(err)
	}
	server, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return client, server
}

func TestStreamCarriesBytes(t *testing.T) {
	client, server := stream(t, New(1))
	want := bytes.Repeat([]byte("0123456789"), 100_000) // several windows
	go func() {
		client.Write(want)
		client.Close()
	}()
	got, err := io.ReadAll(server)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("ReadAll = %d bytes, %v, want %d, nil", len(got), err, len(want))
	}
	if _, err := server.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("Write to a closed peer = %v, want EPIPE", err)
	}
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read after Close = %v, want net.ErrClosed", err)
	}
}

func TestStreamDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := stream(t, New(1))
		start := time.Now()
		server.SetReadDeadline(start.Add(3 * time.Second))
		if _, err := server.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Read = %v, want a timeout", err)
		}
		var ne net.Error
		client.SetWriteDeadline(time.Now().Add(2 * time.Second))
		n, err := client.Write(make([]byte, 2*window))
		if !errors.As(err, &ne) || !ne.Timeout() || n != window {
			t.Errorf("Write = %d, %v, want %d and a timeout", n, err, window)
		}
		if got := time.Since(start); got != 5*time.Second {
			t.Errorf("the two took %v, want 5s", got)
		}
		server.SetReadDeadline(time.Time{})
		if n, err := io.ReadFull(server, make([]byte, window)); n != window || err != nil {
			t.Errorf("ReadFull after the deadline was lifted = %d, %v", n, err)
		}
	})
}

func TestLatencyDelaysStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(1)
		n.SetConditions(Conditions{Latency: 50 * time.Millisecond})
		start := time.Now()
		client, server := stream(t, n)
		client.Write([]byte("a"))
		server.Read(make([]byte, 1))
		if got := time.Since(start); got != 150*time.Millisecond {
			t.Errorf("connect and first byte took %v, want 150ms", got)
		}
	})
}

func TestCutLinkStallsUntilHealed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(1)
		client, server := stream(t, n)
		n.Partition([]string{"10.0.0.1"}, []string{"10.0.0.2"})
		client.Write([]byte("a"))
		start := time.Now()
		time.AfterFunc(time.Minute, n.Heal)
		if _, err := server.Read(make([]byte, 1)); err != nil || time.Since(start) != time.Minute {
			t.Errorf("Read = %v after %v, want nil after 1m0s", err, time.Since(start))
		}
		n.Cut("10.0.0.2", "10.0.0.1")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := n.Host("10.0.0.1").Dial(ctx, "10.0.0.2:80"); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Dial across a cut = %v, want a timeout", err)
		}
	})
}

func TestKillResetsAndRefuses(t *testing.T) {
	n := New(1)
	client, _ := stream(t, n)
	n.Host("10.0.0.2").Kill()
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("Read = %v, want ECONNRESET", err)
	}
	if _, err := n.Host("10.0.0.1").Dial(t.Context(), "10.0.0.2:80"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("Dial = %v, want ECONNREFUSED", err)
	}
}

func TestPortsAreTakenAndFreed(t *testing.T) {
	h := New(1).Host("10.0.0.1")
	l, err := h.Listen("10.0.0.1:80")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Listen(":80"); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("second Listen = %v, want EADDRINUSE", err)
	}
	if _, err := h.Listen("10.0.0.9:80"); !errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Errorf("Listen on another's address = %v, want EADDRNOTAVAIL", err)
	}
	l.Close()
	if _, err := h.Listen(":80"); err != nil {
		t.Errorf("Listen after Close = %v", err)
	}
}

func TestPacketLossIsAboutAsConfigured(t *testing.T) {
	n := New(7)
	n.SetConditions(Conditions{Loss: 0.3, Duplicate: 0.1})
	from, _ := n.Host("10.0.0.1").ListenPacket(":1")
	to, _ := n.Host("10.0.0.2").ListenPacket(":2")
	const sent = 4000
	for range sent {
		from.WriteTo([]byte("x"), to.LocalAddr())
	}
	got := 0
	to.SetReadDeadline(time.Now())
	for {
		if _, _, err := to.ReadFrom(make([]byte, 10)); err != nil {
			break
		}
		got++
	}
	if got != 0 {
		t.Fatalf("an expired deadline let %d packets through", got)
	}
	to.SetReadDeadline(time.Time{})
	tr := n.Traffic()
	if tr.Packets != int64(sent) || tr.Bytes < tr.Packets {
		t.Errorf("counted %d packets with %d bytes, sent %d", tr.Packets, tr.Bytes, sent)
	}
	// Binomial with n=4000, p=0.3: standard deviation 29; five of them.
	if tr.Lost < 1200-145 || tr.Lost > 1200+145 {
		t.Errorf("lost %d of %d packets, want about 1200", tr.Lost, sent)
	}
	// Of the remaining 2800 a tenth arrives twice, up to the queue's bound.
	if tr.Dropped != 0 {
		t.Errorf("dropped %d packets with room in the queue", tr.Dropped)
	}
	to.Close()
	if _, _, err := to.ReadFrom(make([]byte, 10)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("ReadFrom after Close = %v, want net.ErrClosed", err)
	}
}

func TestFullQueueDrops(t *testing.T) {
	n := New(1)
	from, _ := n.Host("10.0.0.1").ListenPacket(":1")
	to, _ := n.Host("10.0.0.2").ListenPacket(":2")
	for range packetQueue + 10 {
		from.WriteTo([]byte("x"), to.LocalAddr())
	}
	if got := n.Traffic().Dropped; got != 10 {
		t.Errorf("dropped %d packets, want 10", got)
	}
}

func TestCarriesHTTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(1)
		n.SetConditions(Conditions{Latency: time.Millisecond})
		l, err := n.Host("10.0.0.2").Listen(":80")
		if err != nil {
			t.Fatal(err)
		}
		body := strings.Repeat("x", 3*window)
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			w.Write(b)
		})}
		go srv.Serve(l)
		tr := &http.Transport{DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			return n.Host("10.0.0.1").Dial(ctx, addr)
		}}
		for range 3 {
			resp, err := (&http.Client{Transport: tr}).Post("http://10.0.0.2/", "text/plain", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || len(got) != len(body) {
				t.Fatalf("body of %d bytes, %v, want %d", len(got), err, len(body))
			}
		}
		tr.CloseIdleConnections()
		srv.Close()
	})
}
