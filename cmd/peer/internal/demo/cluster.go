package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/config"
	"github.com/summarycache/summarycache/cmd/peer/internal/node"
	"github.com/summarycache/summarycache/cmd/peer/internal/origin"
	"github.com/summarycache/summarycache/cmd/peer/internal/replay"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// A cluster is an origin and peers on loopback, with their files in one temporary directory.
type cluster struct {
	dir      string
	origin   *origin.Handler
	server   *http.Server
	base     string // the origin's URL
	nodes    []*node.Node
	counters []counters // by node

	seen atomic.Pointer[replay.Counts] // the clients' counts so far
}

// counters count origin fetches of objects that a sibling held at that moment, which neither peers nor
// clients can know.
type counters struct {
	missed, missedBytes atomic.Int64
}

// startCluster starts everything and waits until every peer has the digests of all others.
func startCluster(ctx context.Context, o Options) (c *cluster, err error) {
	c = &cluster{origin: &origin.Handler{Sizes: o.Trace.Sizes}, counters: make([]counters, o.Peers)}
	c.seen.Store(new(replay.Counts))
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	if c.dir, err = os.MkdirTemp(o.TempDir, "peer-demo-"); err != nil {
		return c, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return c, err
	}
	c.origin.Fetched = c.fetched
	c.server = &http.Server{Handler: c.origin, ReadHeaderTimeout: time.Minute}
	c.base = "http://" + listener.Addr().String()
	go c.server.Serve(listener)

	secret := make([]byte, 32)
	rand.Read(secret)
	for i := range o.Peers {
		n, err := node.Start(ctx, node.Options{Config: c.config(o, i, secret), Version: o.Version, Logger: o.Logger})
		if err != nil {
			return c, fmt.Errorf("cannot start %s: %w", name(i), err)
		}
		c.nodes = append(c.nodes, n)
	}
	return c, c.settle(ctx)
}

func name(i int) string { return fmt.Sprintf("peer-%d", i+1) }

func (c *cluster) config(o Options, i int, secret []byte) config.Config {
	base, _ := url.Parse(c.base)
	cfg := config.Config{
		Name: name(i), Listen: "127.0.0.1:0", Admin: "127.0.0.1:0", Gossip: "127.0.0.1:0", Secret: secret, Origin: base,
		Store: filepath.Join(c.dir, name(i)), StoreSize: storeSize(o), MemorySize: 16 << 20,
		Objects: uint64(max(len(o.Trace.Sizes), 1000)), FalsePositives: 0.001, Publish: o.Publish,
	}
	if o.Forward {
		cfg.Origin = nil
	}
	if i > 0 {
		cfg.Join = []string{c.nodes[0].Addresses().Gossip}
	}
	return cfg
}

// storeSize returns a size with room for every object, because the demo shows cooperation and not
// eviction. A single object may take at most a quarter of a store.
func storeSize(o Options) int64 {
	var largest int64
	for _, size := range o.Trace.Sizes {
		largest = max(largest, size)
	}
	blocks := int64(len(o.Trace.Sizes)) * 8 << 10
	return max(2*(o.Trace.Bytes()+blocks), 8*largest, 64<<20)
}

// settle waits until every peer has the digests of all others.
func (c *cluster) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !c.settled() {
		select {
		case <-ctx.Done():
			return errors.New("the peers did not find each other in 20 s")
		case <-tick.C:
		}
	}
	return nil
}

func (c *cluster) settled() bool {
	for _, n := range c.nodes {
		current := 0
		for _, m := range n.Status().Members {
			if m.Current {
				current++
			}
		}
		if current != len(c.nodes)-1 {
			return false
		}
	}
	return true
}

// fetched is called by the origin for each fetch. If another peer holds the object at this moment, the
// digests should have shown it.
func (c *cluster) fetched(r *http.Request) {
	sender := c.sender(r)
	if sender < 0 {
		return
	}
	identity := c.identity(r.URL.RequestURI())
	for i, n := range c.nodes {
		if i != sender && n.Holds(identity) {
			c.counters[sender].missed.Add(1)
			c.counters[sender].missedBytes.Add(c.origin.Sizes[r.URL.RequestURI()])
			return
		}
	}
}

// identity returns the key, as in package httpcache, of the origin's response to a GET without Vary.
func (c *cluster) identity(target string) string { return "GET " + c.base + target }

// sender returns the number of the peer that sent a request to the origin, by its Via field, or -1.
func (c *cluster) sender(r *http.Request) int {
	via := rfc9111.Via(r.Header)
	for i := range c.nodes {
		if slices.Contains(via, name(i)) {
			return i
		}
	}
	return -1
}

// icpBytes returns the UDP payload of a query and its reply in ICP (RFC 2186). Each has a header of 20
// bytes and the URL with a zero byte at its end. The query also has the requester's address, 4 bytes.
func icpBytes(url int) int64 { return int64(20+4+url+1) + int64(20+url+1) }

// close stops everything and removes the files.
func (c *cluster) close() error {
	errs := make([]error, len(c.nodes))
	var all sync.WaitGroup
	for i, n := range c.nodes {
		all.Go(func() { errs[i] = n.Close() })
	}
	all.Wait()
	if c.server != nil {
		errs = append(errs, c.server.Close())
	}
	if c.dir != "" {
		errs = append(errs, os.RemoveAll(c.dir))
	}
	return errors.Join(errs...)
}
