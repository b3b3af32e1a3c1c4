package gossip

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/summarycache/summarycache/gossip/internal/guard"
)

// promise returns the header of a list of members, with their number and the length of the state.
func promise(members, state uint32) []byte {
	return append(bytes.Clone(guard.HeaderOf("")), guard.Pack(guard.MsgPushPull, "Nodes", members, "UserStateLen", state, "Join", false)...)
}

// memoryInUse returns the present bytes of heap and stacks, with garbage.
func memoryInUse() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// TestFloodsOfMemberLists: strangers that send lists of members to a peer without a secret cost it memory
// for the bytes that they send, not for the lengths that they claim.
func TestFloodsOfMemberLists(t *testing.T) {
	for _, flood := range []struct {
		name    string
		streams int
		say     []byte
	}{
		{"members as many as may be", 500, promise(8000, 0)},
		{"a million members promised", 60, promise(1<<20, 0)},
		{"a state of 20 MiB promised", 60, promise(0, 20<<20)},
	} {
		t.Run(flood.name, func(t *testing.T) {
			n, err := New(Config{Name: "p1", Bind: "127.0.0.1:0", Holdings: NewHoldings(newFilter(t, nil)), Logger: testLog()})
			if err != nil {
				t.Fatal(err)
			}
			defer n.Close()
			runtime.GC()
			before := memoryInUse()
			for range flood.streams {
				c, err := net.Dial("tcp", n.Addr())
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				if _, err := c.Write(flood.say); err != nil {
					t.Fatal(err)
				}
			}
			var most uint64
			for range 20 {
				time.Sleep(10 * time.Millisecond)
				most = max(most, memoryInUse())
			}
			most -= min(before, most)
			t.Logf("%d streams took %.1f MiB", flood.streams, float64(most)/(1<<20))
			if most > 32<<20 {
				t.Errorf("%d streams took %d MiB", flood.streams, most>>20)
			}
		})
	}
}

// A stranger's streams, which have a port each, are few lines of the log.
func TestStreamsOfStrangersAreFewLines(t *testing.T) {
	var log lockedLog
	n, err := New(Config{Name: "p1", Bind: "127.0.0.1:0", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	for range 200 {
		c, err := net.Dial("tcp", n.Addr())
		if err != nil {
			t.Fatal(err)
		}
		c.Write(promise(8000, 0))
		c.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, c)
		c.Close()
	}
	if got := strings.Count(log.String(), "\n"); got < 2 || got > 20 {
		t.Errorf("200 streams are %d lines:\n%s", got, log.String())
	}
}
