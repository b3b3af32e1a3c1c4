//go:build linux && !race

package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip"
)

// withoutWindow sends 100 requests by HTTP/2 for an object, of whose body it takes no byte.
func withoutWindow(c net.Conn, host, path string) error {
	var b []byte
	frame := func(kind, flags byte, stream uint32, payload []byte) {
		b = append(b, byte(len(payload)>>16), byte(len(payload)>>8), byte(len(payload)), kind, flags)
		b = append(binary.BigEndian.AppendUint32(b, stream), payload...)
	}
	b = append(b, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"...)
	frame(4, 0, 0, []byte{0, 4, 0, 0, 0, 0}) // INITIAL_WINDOW_SIZE 0
	frame(4, 1, 0, nil)
	text := func(name byte, value string) []byte { return append([]byte{name, byte(len(value))}, value...) }
	head := append([]byte{0x82, 0x86}, append(text(0x04, path), text(0x01, host)...)...) // GET, http, :path, :authority
	for i := range uint32(100) {
		frame(1, 5, 1+2*i, head)
	}
	if _, err := c.Write(b); err != nil {
		return err
	}
	go io.Copy(io.Discard, c)
	return nil
}

// TestStreamsInLittleMemory checks that streams whose clients take nothing end neither a peer in
// 256 MiB nor the service for others, and that the memory goes back within seconds of their end.
func TestStreamsInLittleMemory(t *testing.T) {
	origin := objectsOf(t, nil)
	p := inMemory(t, 256, append(reverse, "--origin", origin.URL, "--store", t.TempDir())...)
	other := fromAddress(t, p.listen, 2)
	if err := idle(other, p.listen, "/1000000/x"); err != nil {
		t.Fatal(err)
	}
	before, _ := p.memory()
	var conns []net.Conn
	for range 43 {
		c := fromAddress(t, p.listen, 1)
		conns = append(conns, c)
		if err := withoutWindow(c, p.listen, "/1000000/x"); err != nil {
			t.Fatal(err)
		}
	}
	for range 50 {
		if err := idle(other, p.listen, "/1000000/x"); err != nil {
			t.Fatalf("another client: %v", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	held, peak := p.memory()
	for _, c := range conns {
		c.Close()
	}
	time.Sleep(5 * time.Second)
	after, _ := p.memory()
	t.Logf("resident: %d MB before, %d held, %d at most, %d five seconds after", before>>20, held>>20, peak>>20, after>>20)
	if peak > 256<<20 {
		t.Errorf("%d MiB resident at most", peak>>20)
	}
	if after > before+32<<20 {
		t.Errorf("%d MiB resident five seconds after, %d before", after>>20, before>>20)
	}
}

// TestIdleConnectionsInLittleMemory checks that 10,000 idle connections do not end a peer in 256 MiB,
// which keeps at least 3,000 of them.
func TestIdleConnectionsInLittleMemory(t *testing.T) {
	origin := objectsOf(t, nil)
	p := inMemory(t, 256, append(reverse, "--origin", origin.URL, "--store", t.TempDir())...)
	other := fromAddress(t, p.listen, 2)
	if err := idle(other, p.listen, "/1000/x"); err != nil {
		t.Fatal(err)
	}
	before, _ := p.memory()
	conns := make([]net.Conn, 10_000)
	for i := range conns {
		conns[i] = fromAddress(t, p.listen, 10+i%100)
	}
	var failed atomic.Int64
	var all sync.WaitGroup
	for part := range 50 {
		all.Go(func() {
			for i := part; i < len(conns); i += 50 {
				if idle(conns[i], p.listen, "/1000/x") != nil {
					failed.Add(1)
				}
			}
		})
	}
	all.Wait()
	if err := idle(other, p.listen, "/1000/x"); err != nil {
		t.Logf("the first connection: %v", err)
	}
	held, peak := p.memory()
	open := p.status().Clients.Open
	t.Logf("resident: %d MiB before, %d held, %d at most; %d connections are open, %d failed", before>>20, held>>20, peak>>20, open, failed.Load())
	if open < 3000 {
		t.Errorf("%d connections are open, want 3,000", open)
	}
	if peak > 256<<20 {
		t.Errorf("%d MiB resident at most", peak>>20)
	}
}

// tagged gives objects below /1/tagged/ 1,000 tags that no other object has.
func tagged(h http.Header, r *http.Request) {
	if name, ok := strings.CutPrefix(r.URL.Path, "/1/tagged/"); ok {
		var tags strings.Builder
		for k := range 1000 {
			fmt.Fprintf(&tags, "%s-%d ", name, k)
		}
		h.Set("Surrogate-Key", tags.String())
	}
}

// memberOf joins a cluster as a member with so many keys.
func memberOf(t *testing.T, p *process, name string, keys uint64) {
	holdings, err := gossip.PlanHoldings(keys, 0.001, digest.HTTP, nil)
	if err != nil {
		t.Fatal(err)
	}
	filter := holdings.Keys().Filter()
	for i := range keys {
		filter.Add(digest.Key(xxhash.Sum64String(fmt.Sprint(name, i))))
	}
	n, err := gossip.New(gossip.Config{Name: name, Bind: "127.0.0.1:0", Join: []string{p.gossip}, Holdings: holdings, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	if err := n.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// ordinary is the load of clients that do nothing unusual.
type ordinary struct {
	failed, hits, all int
	p50, p99          time.Duration
	reasons           map[string]int
}

// ordinaryLoad asks for 200 objects over and over, 200 times a second, from an address of its own.
func ordinaryLoad(addr string, lasts time.Duration) (o ordinary) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	transport := &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 16}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 30 * time.Second}
	o.reasons = make(map[string]int)
	var mu sync.Mutex
	var took []time.Duration
	var all sync.WaitGroup
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	places := make(chan struct{}, 64)
	for i, begun := 0, time.Now(); time.Since(begun) < lasts; i++ {
		<-tick.C
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			start := time.Now()
			resp, err := client.Get(fmt.Sprintf("http://%s/20000/ordinary/%d", addr, i%200))
			reason, hit := "", false
			if err != nil {
				reason = err.Error()
			} else {
				n, err := io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if resp.StatusCode != http.StatusOK || err != nil || n != 20000 {
					reason = fmt.Sprint(resp.Status, n, err)
				}
				hit = strings.Contains(resp.Header.Get("Cache-Status"), "hit")
			}
			mu.Lock()
			defer mu.Unlock()
			o.all++
			if took = append(took, time.Since(start)); reason != "" {
				o.failed++
				o.reasons[reason]++
			} else if hit {
				o.hits++
			}
		})
	}
	all.Wait()
	slices.Sort(took)
	o.p50, o.p99 = took[len(took)/2], took[len(took)*99/100]
	return o
}

// TestEverythingInLittleMemory checks that all of this at once, and ten times as many attackers from
// many addresses, leaves a peer in 256 MiB alive, with the connections, the digest and the ordinary load
// that it had before.
func TestEverythingInLittleMemory(t *testing.T) {
	if !*long {
		t.Skip("takes more than a minute: use -long")
	}
	origin := objectsOf(t, tagged)
	p := inMemory(t, 256, append(reverse, "--origin", origin.URL, "--store", t.TempDir())...)
	memberOf(t, p, "m1", 4_000_000)
	eventually(t, time.Minute, "the first digest", func() bool { return len(p.status().Members) == 1 && p.status().Members[0].MemoryBytes > 0 })
	ordinaryLoad(p.listen, 2*time.Second)
	before := ordinaryLoad(p.listen, 5*time.Second)
	for i := range 2 { // digests, which take this process long to make
		memberOf(t, p, fmt.Sprint("big", i), 8_000_000)
	}

	ctx, cancel := context.WithCancel(t.Context())
	var attackers sync.WaitGroup
	attack := func(f func(i int)) {
		attackers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				f(i)
			}
		})
	}
	dial := func(i int) (net.Conn, error) {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i%250))}, Timeout: 5 * time.Second}
		return d.DialContext(ctx, "tcp", p.listen)
	}
	var connections atomic.Int64
	attack(func(i int) { // connections that do nothing after a request
		conns := make([]net.Conn, 0, 5000)
		for k := range cap(conns) {
			c, err := dial(k)
			if err != nil {
				break
			}
			fmt.Fprintf(c, "GET /20000/ordinary/1 HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\n")
			conns = append(conns, c)
			connections.Add(1)
		}
		<-ctx.Done()
		for _, c := range conns {
			c.Close()
		}
	})
	attack(func(i int) { // streams without a window
		conns := make([]net.Conn, 0, 430)
		for k := range cap(conns) {
			c, err := dial(k)
			if err != nil {
				break
			}
			withoutWindow(c, p.listen, "/1000000/x")
			conns = append(conns, c)
		}
		sleep(ctx, 5*time.Second)
		for _, c := range conns {
			c.Close()
		}
	})
	var tags atomic.Int64
	attack(func(i int) { // tags
		c, err := dial(i)
		if err != nil {
			return
		}
		defer c.Close()
		if idle(c, p.listen, fmt.Sprint("/1/tagged/", i)) == nil {
			tags.Add(1)
		}
	})
	during := ordinaryLoad(p.listen, 20*time.Second)
	s := p.status()
	var keys uint64
	for _, m := range s.Members {
		if m.MemoryBytes > 0 {
			keys += m.Keys
		}
	}
	cancel()
	attackers.Wait()
	now, peak := p.memory()
	time.Sleep(5 * time.Second)
	after, _ := p.memory()
	t.Logf("ordinary load: before %+v, during %+v", before, during)
	t.Logf("resident: %d MiB, %d at most, %d five seconds after; %d connections open of %d, %d tagged objects of %d, %d keys of digests; accounts: %+v",
		now>>20, peak>>20, after>>20, s.Clients.Open, connections.Load(), s.Store.Objects, tags.Load(), keys, s.Memory.Accounts)
	if peak > 256<<20 || s.Clients.Open < 3000 || keys < 4_000_000 {
		t.Errorf("%d MiB at most, %d connections, %d keys", peak>>20, s.Clients.Open, keys)
	}
	if during.failed > 0 || during.hits < during.all*98/100 {
		t.Errorf("ordinary load: %d failed; %d hits of %d, before %d of %d", during.failed, during.hits, during.all, before.hits, before.all)
	}
}
