package gossip

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/internal/guard"
	"github.com/summarycache/summarycache/gossip/internal/secrets"
)

// liarNetwork passes the streams of the exchange that reach its host to lie, and everything else to the
// honest node behind it.
type liarNetwork struct {
	Network
	lie func(net.Conn, *bufio.Reader)
}

func (l liarNetwork) Listen(addr string) (net.Listener, error) {
	inner, err := l.Network.Listen(addr)
	return liarListener{inner, l.lie}, err
}

type liarListener struct {
	net.Listener
	lie func(net.Conn, *bufio.Reader)
}

func (l liarListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		p, first, err := peek(c)
		if err != nil {
			c.Close()
			continue
		}
		if first != firstExchange {
			return p, nil
		}
		go func() {
			defer c.Close()
			l.lie(c, p.in)
		}()
	}
}

// TestLiarsAreNamedAndHarmless makes one member of a cluster without a secret answer gets with nonsense.
// The others' replicas stay right, none uses its answers, and their logs name it.
func TestLiarsAreNamedAndHarmless(t *testing.T) {
	var liar *Node
	filter := func() *digest.Filter { return liar.cfg.Holdings.Keys().Filter().Current() }
	head := func(h exchange.Head) []byte {
		return exchange.Advert{Kind: exchange.Announce, Head: h}.AppendTo(nil)[1:] // an advert is a byte and a head
	}
	frame := func(t exchange.FrameType, payload []byte) []byte {
		return exchange.EndFrame(append(exchange.BeginFrame(nil, t), payload...), 0)
	}
	self := func() exchange.Head {
		liar.mu.Lock()
		defer liar.mu.Unlock()
		return liar.engine.Self()
	}
	for _, tc := range []struct {
		name   string
		answer func(c net.Conn)
		logged string
	}{
		{"a body of random bytes", func(c net.Conn) {
			b := make([]byte, 1000)
			for i := range b {
				b[i] = byte(rand.Uint32())
			}
			c.Write(frame(exchange.FrameSnapshot, append(head(self()), b...)))
		}, "rejected an answer"},
		{"a state that is not that of the body", func(c net.Conn) {
			h := self()
			h.State++
			c.Write(frame(exchange.FrameSnapshot, filter().AppendTo(head(h))))
		}, "does not match its head"},
		{"a version that is not that of the body", func(c net.Conn) {
			h := self()
			h.Version.Sequence += 7
			c.Write(frame(exchange.FrameSnapshot, filter().AppendTo(head(h))))
		}, "does not match its head"},
		{"another number of keys", func(c net.Conn) {
			h := self()
			h.Keys = 1 << 60
			c.Write(frame(exchange.FrameSnapshot, filter().AppendTo(head(h))))
		}, "does not match its head"},
		{"another peer's digest", func(c net.Conn) {
			h := self()
			h.Origin++
			c.Write(frame(exchange.FrameSnapshot, filter().AppendTo(head(h))))
		}, "rejected an answer"},
		{"a delta nobody asked for", func(c net.Conn) {
			d, err := digest.Diff(filter(), filter())
			if err != nil {
				t.Error(err)
			}
			body, err := d.AppendTo(head(self()), filter())
			if err != nil {
				t.Error(err)
			}
			c.Write(frame(exchange.FrameDelta, body))
		}, "rejected an answer"},
		{"a length beyond the limit", func(c net.Conn) {
			c.Write([]byte{byte(exchange.FrameSnapshot), 0xff, 0xff, 0xff, 0xff})
		}, "rejected an answer"},
		{"a length that never comes", func(c net.Conn) {
			b := frame(exchange.FrameSnapshot, head(self()))
			binary.LittleEndian.PutUint32(b[1:], 60<<20)
			c.Write(b)
			io.Copy(io.Discard, c)
		}, ""},
		{"silence", func(c net.Conn) { io.Copy(io.Discard, c) }, ""},
		{"a frame of another kind", func(c net.Conn) {
			c.Write(exchange.AppendVector(nil, exchange.FrameVector, nil))
		}, "rejected an answer"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				defer c.close()
				var log logBuffer
				plain := func(name, ip string) Config {
					cfg := c.config(name, ip)
					cfg.Secret = nil
					cfg.Holdings = NewHoldings(newFilter(t, nil))
					cfg.Join = []string{"10.0.0.1:7946"}
					return cfg
				}
				for i, name := range []string{"p1", "p2", "p3"} {
					cfg := plain(name, fmt.Sprintf("10.0.0.%d", i+1))
					cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
					if i == 0 {
						cfg.Join = nil
					}
					c.start(cfg)
				}
				cfg := plain("liar", "10.0.0.66")
				for i := range 500 {
					cfg.Holdings.Keys().Add(digest.KeyOfString(0, fmt.Sprint(i)))
				}
				cfg.Network = liarNetwork{cfg.Network, func(conn net.Conn, in *bufio.Reader) {
					in.Discard(2)
					w := newConn(&peeked{conn, in}, new(meters))
					if _, err := liar.welcome(w); err != nil {
						return
					}
					for {
						if typ, _, err := w.readFrame(time.Minute, 0); err != nil {
							return
						} else if typ == exchange.FrameSync {
							conn.Write(exchange.AppendVector(nil, exchange.FrameVector, nil))
							continue
						}
						tc.answer(conn)
					}
				}}
				var err error
				if liar, err = New(cfg); err != nil {
					t.Fatal(err)
				}
				defer liar.Close()
				if err := liar.Join(t.Context()); err != nil {
					t.Fatal(err)
				}
				for i := range 60 {
					c.nodes["p1"].cfg.Holdings.Keys().Add(digest.KeyOfString(0, fmt.Sprintf("p1/%d", i)))
					time.Sleep(500 * time.Millisecond)
				}
				within(t, settling, c.inStep)
				if got := holders(c.nodes["p1"], digest.KeyOfString(0, "1")); got["liar"] {
					t.Error("the liar is a candidate")
				}
				s := c.nodes["p1"].Stats().Exchange
				if s.Fetches > 60+200 {
					t.Errorf("%d gets in half a minute", s.Fetches)
				}
				if tc.logged != "" && (!log.has(tc.logged) || !log.has("member=liar")) {
					t.Errorf("no log record %q about the liar:\n%s", tc.logged, log.b.String())
				}
			})
		})
	}
}

// TestLengthsDoNotAllocate reads frames that are much shorter than the length in their headers.
func TestLengthsDoNotAllocate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer near.Close()
		var header [exchange.FrameHeader]byte
		header[0] = byte(exchange.FrameSnapshot)
		binary.LittleEndian.PutUint32(header[1:], 64<<20)
		go func() {
			far.Write(header[:])
			far.Write(make([]byte, 100_000))
		}()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := newConn(near, new(meters)).readFrame(time.Second, 64<<20)
		runtime.ReadMemStats(&after)
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("readFrame = %v, want a timeout", err)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
			t.Errorf("100 kB of a promised 64 MiB took %d bytes of memory", got)
		}
		far.Close()
	})
}

// TestStrangersAreBounded opens more connections than are allowed, and sends
// nothing, or nonsense.
func TestStrangersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		cfg := c.config("p1", "10.0.0.1")
		cfg.Limits.ConnsPerHost = 20
		cfg.Limits.Conns = 50
		n := c.start(cfg)
		open := func(from string, count int, say []byte) {
			for range count {
				conn, err := c.net.Host(from).Dial(t.Context(), "10.0.0.1:7946")
				if err != nil {
					t.Fatal(err)
				}
				conn.Write(say)
				go func() {
					io.Copy(io.Discard, conn)
					conn.Close()
				}()
			}
			synctest.Wait()
		}
		held := func() int {
			n.acceptor.mu.Lock()
			defer n.acceptor.mu.Unlock()
			return len(n.acceptor.conns)
		}
		open("10.6.6.1", 100, nil)
		if got := held(); got != 20 {
			t.Errorf("%d idle connections of one host are held, want 20", got)
		}
		open("10.6.6.2", 100, nil)
		open("10.6.6.3", 100, nil)
		if got := held(); got != 50 {
			t.Errorf("%d idle connections are held, want 50", got)
		}
		time.Sleep(firstByteWait + time.Millisecond)
		if got := held(); got != 0 {
			t.Errorf("%d idle connections are held after %v", got, firstByteWait)
		}
		// Half a TLS handshake, a plain stream of memberlist's, and HTTP.
		for i, say := range [][]byte{{firstTLS, 3, 1, 2, 0}, {firstMemberlist, 3, 'a', 'b', 'c'}, []byte("GET / HTTP/1.1\r\n\r\n")} {
			open(fmt.Sprintf("10.7.7.%d", i+1), 10, say)
		}
		if got := held(); got != 10 {
			t.Errorf("%d connections are held, want those 10 that began a handshake", got)
		}
		time.Sleep(frameWait + time.Millisecond)
		if got := held(); got != 0 {
			t.Errorf("%d handshakes are held after %v", got, frameWait)
		}
		if s := n.Stats(); s.ConnsRefused != 80+80+90 || s.ConnsStrange != 20 {
			t.Errorf("refused %d, strange %d, want 250 and 20", s.ConnsRefused, s.ConnsStrange)
		}

		// A peer with the secret still gets in.
		other := c.config("p2", "10.0.0.2")
		other.Join = []string{"10.0.0.1:7946"}
		c.start(other)
		within(t, settling, c.inStep)
	})
}

func TestStrangePacketsAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.startMany(2)
		within(t, settling, c.inStep)
		from, err := c.net.Host("10.6.6.6").ListenPacket(":1")
		if err != nil {
			t.Fatal(err)
		}
		defer from.Close()
		n := c.nodes["p1"]
		to := net.UDPAddrFromAddrPort(n.advertise)
		before := n.Stats().PacketsStrange
		from.WriteTo([]byte("hello"), to)
		from.WriteTo(nil, to)
		from.WriteTo(append([]byte{secrets.SealedByte}, make([]byte, maxPacket)...), to)
		from.WriteTo(guard.HeaderOf(""), to)
		synctest.Wait()
		if got := n.Stats().PacketsStrange - before; got != 4 {
			t.Errorf("%d packets were strange, want 4", got)
		}
		// Sealed in form, but not by the key.
		from.WriteTo(append([]byte{secrets.SealedByte}, make([]byte, 100)...), to)
		synctest.Wait()
		if got := len(n.Members()); got != 1 {
			t.Errorf("%d members", got)
		}
	})
}
