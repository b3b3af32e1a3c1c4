package gossip

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/digest"
)

// purse is a budget with a limit.
type purse struct {
	mu                    sync.Mutex
	limit, held, refusals int64
}

func (p *purse) Take(n int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held+n > p.limit {
		p.refusals++
		return false
	}
	p.held += n
	return true
}

func (p *purse) Give(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held -= n; p.held < 0 {
		panic(fmt.Sprintf("%d bytes more were given back than taken", -p.held))
	}
}

func (p *purse) now() (held, refusals int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held, p.refusals
}

// lockedLog is a log that a test reads.
type lockedLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestDigestMemory checks that a digest for which there is no memory is not taken, which the log says,
// while those held before stay and still change; and that a peer's death makes room for it.
func TestDigestMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		const keys = 20_000
		memory := &purse{limit: keys * 16} // for one such digest: half of that is needed only while it arrives
		log := new(lockedLog)
		cfg := c.config("p1", "10.0.0.1")
		cfg.Limits.DigestMemory = memory
		cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
		small := c.start(cfg)
		join := func(i int) *Node {
			cfg := c.config(fmt.Sprintf("p%d", i), fmt.Sprintf("10.0.0.%d", i))
			cfg.Join = []string{"10.0.0.1:7946"}
			var err error
			if cfg.Holdings, err = PlanHoldings(keys+1, 0.001, digest.Opaque, testSecret); err != nil {
				t.Fatal(err)
			}
			for k := range keys {
				cfg.Holdings.Keys().Add(key(cfg.Name, k))
			}
			n := c.start(cfg)
			time.Sleep(15 * time.Second)
			return n
		}
		second := join(2)
		held, _ := memory.now()
		if !holders(small, key("p2", 1))["p2"] || held < 5*keys || held > 12*keys {
			t.Fatalf("%v have a key of the first; %d bytes are held for %d keys", holders(small, key("p2", 1)), held, keys)
		}
		third := join(3)
		if got := holders(small, key("p3", 1)); got["p3"] {
			t.Errorf("%v have a key of the second, for which there is no memory", got)
		}
		if held, refusals := memory.now(); refusals == 0 || held > memory.limit {
			t.Errorf("%d bytes are held, %d times was more refused", held, refusals)
		}
		if !strings.Contains(log.String(), "no memory for") {
			t.Errorf("the log has no reason:\n%s", log.String())
		}
		if !holders(third, key("p2", 1))["p2"] {
			t.Error("the peer without a limit lacks a digest")
		}
		second.cfg.Holdings.Keys().Add(key("p2", keys+1))
		time.Sleep(10 * time.Second)
		if !holders(small, key("p2", keys+1))["p2"] {
			t.Error("a digest that is held does not change any more")
		}
		second.Close()
		time.Sleep(30 * time.Minute) // the replica of a dead peer is kept for 10, a refused one is tried again every 5
		if !holders(small, key("p3", 1))["p3"] {
			held, _ := memory.now()
			t.Errorf("no room for a digest after another's peer died; %d bytes are held", held)
		}
	})
}

// TestStreamMemory checks that incoming connections beyond the memory for them are refused, and that it
// is given back.
func TestStreamMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		memory := &purse{limit: 10 * perStream}
		cfg := c.config("p1", "10.0.0.1")
		cfg.Limits.StreamMemory = memory
		n := c.start(cfg)
		for range 30 {
			conn, err := c.net.Host("10.0.0.9").Dial(t.Context(), n.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
		}
		synctest.Wait()
		if held, refusals := memory.now(); held > memory.limit || held < memory.limit-perStream || refusals < 20 {
			t.Errorf("%d connections' memory is held, %d times was it refused", held/perStream, refusals)
		}
		time.Sleep(time.Minute)
		if held, _ := memory.now(); held != 0 {
			t.Errorf("%d bytes are held by no connection", held)
		}
	})
}
