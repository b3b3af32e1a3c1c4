package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/config"
	"github.com/summarycache/summarycache/cmd/peer/internal/origin"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
	"github.com/summarycache/summarycache/gossip/memnet"
	"github.com/summarycache/summarycache/sim/workload"
)

// A virtual cluster runs in one process and in virtual time; gossip and HTTP use
// a network in memory.
type virtual struct {
	t       *testing.T
	net     *memnet.Network
	origin  *origin.Handler
	server  *http.Server
	client  *http.Client
	hosts   []*memnet.Host
	nodes   []*Node
	buf     []byte
	digests string               // file of the peers started next
	tune    func(*config.Config) // changes the configuration of the peers started next; nil = none
	disk    diskstore.FS         // of the peers started next; nil = the system's
}

const originURL = "http://10.9.9.9:8080"

func newVirtual(t *testing.T, peers int, sizes map[string]int64) *virtual {
	v := &virtual{t: t, net: memnet.New(1), origin: &origin.Handler{Sizes: sizes}, buf: make([]byte, 64<<10)}
	l, err := v.net.Host("10.9.9.9").Listen("10.9.9.9:8080")
	if err != nil {
		t.Fatal(err)
	}
	v.server = &http.Server{Handler: v.origin}
	go v.server.Serve(l)
	clients := v.net.Host("10.8.8.8")
	v.client = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) { return clients.Dial(ctx, addr) },
	}}
	dir := t.TempDir()
	for i := range peers {
		v.start(i, filepath.Join(dir, fmt.Sprint(i)))
	}
	return v
}

func (v *virtual) start(i int, dir string) {
	v.t.Helper()
	n, err := v.try(i, dir)
	if err != nil {
		v.t.Fatal(err)
	}
	v.hosts, v.nodes = append(v.hosts, v.net.Host(fmt.Sprintf("10.0.0.%d", i+1))), append(v.nodes, n)
}

// try starts it, or returns why it does not start.
func (v *virtual) try(i int, dir string) (*Node, error) {
	ip := fmt.Sprintf("10.0.0.%d", i+1)
	base, _ := url.Parse(originURL)
	cfg := config.Config{
		Name: fmt.Sprintf("p%d", i), Listen: ip + ":80", Admin: ip + ":81", Gossip: ip + ":7946", Origin: base,
		Secret: []byte("0123456789abcdef"), Store: dir, StoreSize: 256 << 20, MemorySize: 1 << 20,
		Objects: 1000, FalsePositives: 0.001, Digests: v.digests,
	}
	if i > 0 {
		cfg.Join = []string{"10.0.0.1:7946"}
	}
	if v.tune != nil {
		v.tune(&cfg)
	}
	return Start(v.t.Context(), Options{Config: cfg, Network: v.net.Host(ip), FS: v.disk})
}

func (v *virtual) get(i int, target string) error { return v.getInto(i, target, v.buf) }

// getInto is get for use in several goroutines.
func (v *virtual) getInto(i int, target string, buf []byte) error {
	answer, err := v.client.Get(fmt.Sprintf("http://10.0.0.%d:80%s", i+1, target))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s of p%d: %s (%s)", target, i, answer.Status, answer.Header.Get("Cache-Status"))
	}
	return origin.Check(answer.Body, target, v.origin.Sizes[target], buf)
}

// send sends a request to a peer, and returns the body and Cache-Status of the answer.
func (v *virtual) send(method string, i int, target string) (body, status string) {
	v.t.Helper()
	r, _ := http.NewRequest(method, fmt.Sprintf("http://10.0.0.%d:80%s", i+1, target), nil)
	answer, err := v.client.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return string(b), strings.Join(answer.Header["Cache-Status"], ", ")
}

// stop ends everything, so that no goroutine outlives the test.
func (v *virtual) stop() {
	v.t.Helper()
	var errs []error
	for _, n := range v.nodes {
		errs = append(errs, n.Close())
	}
	v.client.CloseIdleConnections()
	errs = append(errs, v.server.Close())
	pause(time.Minute) // memberlist's last probes end by themselves
	if err := errors.Join(errs...); err != nil {
		v.t.Error(err)
	}
}

// pause waits for more than no time: goroutines of one bubble that receive at once from timers
// that have run out share a context of the race detector, which then crashes (Go 1.26).
func pause(d time.Duration) { <-time.After(max(d, 1)) }

// knowing counts the pairs of peers of which one has the other's current digest.
func (v *virtual) knowing() (pairs int) {
	for _, n := range v.nodes {
		for _, m := range n.Status().Members {
			if m.Current {
				pairs++
			}
		}
	}
	return pairs
}

func TestTwentyPeers(t *testing.T) {
	peers := 20
	if testing.Short() { // with the race detector
		peers = 8
	}
	synctest.Test(t, func(t *testing.T) {
		trace := workload.Synthetic(workload.Model{Requests: 1000, Objects: 200, Exponent: 0.9, Seed: 3})
		v := newVirtual(t, peers, trace.Sizes)
		defer v.stop()
		for waited := 0; v.knowing() < peers*(peers-1); waited++ {
			if waited == 20 {
				t.Fatalf("%d pairs of peers know each other's digests after 10 s, want %d", v.knowing(), peers*(peers-1))
			}
			pause(500 * time.Millisecond)
		}
		caches := trace.Assign(peers, 3)
		for i, r := range trace.Requests {
			pause(15 * time.Millisecond) // 67 requests a second; a change waits for 200 ms
			if err := v.get(caches[i], r.Key); err != nil {
				t.Fatalf("request %d: %v", i, err)
			}
		}
		var siblingHits, asked, falseHits uint64
		for _, n := range v.nodes {
			c := n.Status().Traffic
			siblingHits, asked, falseHits = siblingHits+c.SiblingHits, asked+c.SiblingRequests, falseHits+c.FalseHits
		}
		floor, fetched := len(trace.Sizes), v.origin.Requests()
		t.Logf("%d objects, %d origin fetches, %d sibling hits of %d questions", floor, fetched, siblingHits, asked)
		if fetched > floor*11/10 {
			t.Errorf("%d origin fetches of %d objects, want at most a tenth more", fetched, floor)
		}
		if siblingHits < 300 || falseHits*50 > asked {
			t.Errorf("%d sibling hits and %d false ones of %d questions", siblingHits, falseHits, asked)
		}
		v.death(trace, caches)
	})
}

// death kills a peer while the other peers' clients go on.
func (v *virtual) death(trace *workload.Trace, caches []int) {
	const dead = 7
	v.hosts[dead].Kill()
	for i, r := range trace.Requests[:300] {
		pause(50 * time.Millisecond)
		if caches[i] == dead {
			continue
		}
		if err := v.get(caches[i], r.Key); err != nil {
			v.t.Fatalf("request %d after the death: %v", i, err)
		}
	}
	for i, n := range v.nodes {
		for _, m := range n.Status().Members {
			if i != dead && m.Name == "p7" && m.State != "dead" {
				v.t.Errorf("p%d says that the dead peer is %s", i, m.State)
			}
		}
	}
}
