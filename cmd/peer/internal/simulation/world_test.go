package simulation

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/config"
	"github.com/summarycache/summarycache/cmd/peer/internal/node"
	"github.com/summarycache/summarycache/cmd/peer/internal/proxy"
	peerrules "github.com/summarycache/summarycache/cmd/peer/internal/rules"
	"github.com/summarycache/summarycache/gossip/httpcache/budget"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore/disktest"
	"github.com/summarycache/summarycache/gossip/memnet"
)

const (
	originIP = "10.9.9.9"
	coldIP   = "10.9.9.8" // of another origin, that of the host cold
)

// A world is one run of a schedule.
type world struct {
	s      schedule
	dir    string // for saved digests
	net    *memnet.Network
	origin *origin
	peers  []*peer
	began  time.Time
	logger *slog.Logger

	mu       sync.Mutex
	lines    []string       // the log of events
	seen     map[string]int // what happened, for sweeps: see sometimes
	troubles []trouble
	barriers []barrier
	lies     map[int][]lie        // by URL
	arriving map[[2]int]time.Time // by node and URL: until when a node got bytes from a sibling that was receiving them still
	wrong    []violation

	clients sync.WaitGroup
	faults  sync.WaitGroup
	over    chan struct{} // closed when faults are to end
}

// A peer is a member of the cluster, with one node after another.
type peer struct {
	w     *world
	index int
	ip    string
	host  *memnet.Host

	changing gate // held while a node starts or ends

	mu    sync.Mutex
	disk  *disk
	wrong fault   // with the disk
	room  int64   // of the disk, in bytes; 0 = without limit
	noisy float64 // share of what gossip sends in which a bit turns

	budget *budget.Budget  // nil = without limit
	rest   *budget.Account // memory of the rest of the process

	node *node.Node // nil = down
	life int        // odd while a node is up, and neither starts nor ends

	skew           atomic.Int64 // of the wall clock, in nanoseconds
	flips, counted atomic.Int64 // bits turned in what was read of objects, and objects found corrupt or removed at start, in former lives
}

func (p *peer) lives() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.life
}

func (p *peer) now() *node.Node {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.node
}

// run runs a schedule in the bubble of t and returns the world at its end.
func run(t *testing.T, s schedule, logger *slog.Logger, seconds *atomic.Int64) *world {
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for {
			select {
			case <-time.After(time.Second):
				seconds.Add(1)
			case <-ended:
				return
			}
		}
	}()
	w := &world{s: s, net: memnet.New(s.Seed), began: time.Now(), logger: logger, seen: map[string]int{}, lies: map[int][]lie{}, arriving: map[[2]int]time.Time{}, over: make(chan struct{})}
	w.dir = temporary(t)
	defer os.RemoveAll(w.dir)
	w.calm()
	w.origin = newOrigin(w)
	w.origin.listen(originIP)
	w.origin.listen(coldIP)
	for i := range s.Peers {
		ip := fmt.Sprintf("10.0.0.%d", i+1)
		p := &peer{w: w, index: i, ip: ip, host: w.net.Host(ip), changing: make(gate, 1)}
		p.insert(disktest.New(), 0)
		w.faults.Go(p.writeBack)
		w.peers = append(w.peers, p)
		if err := p.start(); err != nil {
			t.Fatalf("a peer cannot start: %v", err)
		}
	}
	pause(5 * time.Second)
	w.began = time.Now()
	for _, f := range s.Faults {
		w.faults.Go(func() {
			pause(time.Until(w.at(f.At)))
			w.befall(f)
		})
	}
	for _, r := range s.Requests {
		pause(time.Until(w.at(r.At)))
		w.clients.Go(func() {
			if r.Kind == "churn" {
				w.judge(w.churn(r))
			} else {
				w.judge(w.ask(r))
			}
		})
	}
	close(w.over)
	w.faults.Wait()
	w.heal()
	w.clients.Wait()
	w.judgeWalk()
	w.rest()
	w.last()
	w.stop()
	return w
}

func (w *world) at(ms int) time.Time { return w.began.Add(time.Duration(ms) * time.Millisecond) }

// wait waits for a fault's time, or for the end of all.
func (w *world) wait(ms int) {
	select {
	case <-time.After(time.Duration(max(ms, 1)) * time.Millisecond):
	case <-w.over:
	}
}

// temporary returns a new directory. That of a test is removed too late, and noisily.
func temporary(t *testing.T) string {
	dir, err := os.MkdirTemp("", "simulation")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// pause waits for more than no time: goroutines of one bubble that receive at once from timers
// that have run out share a context of the race detector, which then crashes (Go 1.26).
func pause(d time.Duration) { <-time.After(max(d, 1)) }

// secret is the cluster's secret. Keys are hashed under it, so that each seed fills digests
// differently.
func (w *world) secret() []byte { return fmt.Appendf(nil, "%016d", w.s.Seed) }

// calm ends the faults of the network.
func (w *world) calm() {
	w.net.SetConditions(memnet.Conditions{Latency: 500 * time.Microsecond, Jitter: time.Millisecond})
}

// start starts a node on the peer's directory.
func (p *peer) start() error {
	base, _ := url.Parse("http://" + originIP + ":8080")
	p.mu.Lock()
	d := p.disk
	p.mu.Unlock()
	cfg := config.Config{
		Name: fmt.Sprintf("p%d", p.index), Listen: p.ip + ":80", Admin: p.ip + ":81", Gossip: p.ip + ":7946", Origin: base,
		SiblingMaxAge: time.Duration(p.w.s.Given) * time.Second, SiblingCompare: p.w.s.Compare,
		Secret: p.w.secret(), Digests: p.savedDigests(), Store: storeDir, StoreSize: p.w.s.Store, MemorySize: p.w.s.Memory,
		Objects: p.w.s.Objects, FalsePositives: p.w.s.False, Publish: time.Duration(p.w.s.Publish) * time.Millisecond,
	}
	if p.w.s.Coding {
		cfg.Rules = peerrules.Set{{Name: "compress", Compress: []string{"gzip"}}}
	}
	if p.w.s.Sites {
		cold, _ := url.Parse("http://" + coldIP + ":8080")
		cfg.Origin, cfg.Sites = nil, []proxy.Site{{Origins: []*url.URL{base}, SliceFrom: p.w.s.Slices}, {Hosts: []string{"cold"}, Origins: []*url.URL{cold}}}
	}
	for i := range p.w.s.Peers {
		if i != p.index {
			cfg.Join = append(cfg.Join, fmt.Sprintf("10.0.0.%d:7946", i+1))
		}
	}
	n, err := node.Start(context.Background(), node.Options{Config: cfg, Budget: p.newBudget(), Network: p.network(), FS: d, Now: p.wall, Logger: p.w.logger})
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.node = n
	p.life++
	p.mu.Unlock()
	return nil
}

// wall is the peer's wall clock.
func (p *peer) wall() time.Time { return time.Now().Add(time.Duration(p.skew.Load())) }

// kill ends a node at once, like SIGKILL, which leaves the disk as it is, or like a power cut, which
// loses unwritten data. The node's goroutines then end by themselves, on a disk that is not used again.
func (p *peer) kill(how string) {
	p.mu.Lock()
	n, old := p.node, p.disk
	p.node = nil
	p.life++
	life := p.life
	p.mu.Unlock()
	if n == nil {
		return
	}
	next := disktest.New()
	switch how {
	case "kill":
		next = old.Killed()
	case "power-cut":
		old.mu.Lock()
		next = old.PowerCut(old.rng)
		old.mu.Unlock()
	}
	p.insert(next, life)
	p.count(n)
	p.host.Kill()
	n.Close()
	p.left(old)
}

// count adds up the disk errors that a node has found.
func (p *peer) count(n *node.Node) {
	s := n.Status().Store
	p.counted.Add(int64(s.Corrupt + s.Removed))
}

// left looks for files that a node has left open. Shutdown does not wait for a handler whose
// connection it closes at the end of its time, so that handler ends later.
func (p *peer) left(d *disk) {
	pause(time.Second)
	if n := d.open.Load(); n != 0 {
		p.w.fail("leak", nil, "p%d left %d files open", p.index, n)
	}
}

// shutdown ends a node as SIGTERM does.
func (p *peer) shutdown() {
	p.mu.Lock()
	n, d := p.node, p.disk
	p.node = nil
	p.life++
	p.mu.Unlock()
	if n == nil {
		return
	}
	p.count(n)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	n.Shutdown(ctx)
	p.left(d)
}

// stop ends everything, so that no goroutine outlives the run.
func (w *world) stop() {
	for _, p := range w.peers {
		p.shutdown()
	}
	close(w.origin.closed)
	w.origin.mu.Lock()
	for _, l := range w.origin.listeners {
		l.Close()
	}
	for c := range w.origin.conns {
		c.Close()
	}
	w.origin.mu.Unlock()
	pause(2 * time.Minute) // memberlist's last probes end by themselves, idle connections of the origin too
	w.leftovers()
}

// log adds a line to the log of events.
func (w *world) log(format string, args ...any) {
	line := fmt.Sprintf("%9.3f ", time.Since(w.began).Seconds()) + fmt.Sprintf(format, args...)
	w.mu.Lock()
	w.lines = append(w.lines, line)
	w.mu.Unlock()
}

// sometimes notes an event. A sweep over many seeds fails if an expected event never occurs, since
// then it tests too little.
func (w *world) sometimes(what string) {
	w.mu.Lock()
	w.seen[what]++
	w.mu.Unlock()
}

// A gate is a mutex. Unlike waiting for a sync.Mutex, waiting for it lets the bubble's time pass.
type gate chan struct{}

func (g gate) enter() { g <- struct{}{} }
func (g gate) leave() { <-g }
