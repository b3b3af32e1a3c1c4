//go:build unix

package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/config"
	"github.com/summarycache/summarycache/cmd/peer/internal/node"
	"github.com/summarycache/summarycache/cmd/peer/internal/origin"
	"github.com/summarycache/summarycache/cmd/peer/internal/squid"
)

// A neighbour is a peer in this process, beside Squids.
type neighbour struct {
	*node.Node
	client *http.Client // by way of it
}

// besides starts a forward proxy that cooperates with Squids. It fetches their digests as soon as
// they may have changed.
func besides(t *testing.T, squids ...string) *neighbour {
	t.Helper()
	return besidesAt(t, t.TempDir(), "127.0.0.1:0", squid.Config{MinInterval: 250 * time.Millisecond, MaxInterval: time.Second}, squids...)
}

func besidesAt(t *testing.T, dir, listen string, c squid.Config, squids ...string) *neighbour {
	t.Helper()
	n, err := node.Start(t.Context(), node.Options{Squids: c, Config: config.Config{
		Name: "peer", Listen: listen, Admin: "127.0.0.1:0", Gossip: "127.0.0.1:0", SquidPeers: squids,
		Store: dir, StoreSize: 2 << 30, Objects: 100_000, FalsePositives: 0.001,
	}})
	if err != nil {
		t.Fatal(err)
	}
	p := &neighbour{Node: n}
	p.client = &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		Proxy: by(n.Addresses().Listen), MaxIdleConnsPerHost: 64, DisableCompression: true,
	}}
	t.Cleanup(func() {
		p.client.CloseIdleConnections()
		n.Close()
	})
	return p
}

// by returns the Proxy function of a transport that sends everything to a proxy.
func by(addr string) func(*http.Request) (*url.URL, error) {
	return http.ProxyURL(&url.URL{Scheme: "http", Host: addr})
}

// fetch gets one object and checks it.
func (s *site) fetch(c *http.Client, target string) (*http.Response, error) {
	answer, err := c.Get(s.url + target)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		io.Copy(io.Discard, answer.Body)
		return answer, fmt.Errorf("%s: %s %v", target, answer.Status, answer.Header)
	}
	buf := s.buf.Get().(*[]byte)
	defer s.buf.Put(buf)
	return answer, origin.Check(answer.Body, target, s.Sizes[target], *buf)
}

// fetchAll gets objects, several at a time, and fails the test for each body that is not the
// origin's.
func (s *site) fetchAll(t *testing.T, c *http.Client, targets []string) {
	t.Helper()
	const workers = 12
	var (
		next atomic.Int64
		wg   sync.WaitGroup
		mu   sync.Mutex
		errs []error
	)
	for range workers {
		wg.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(targets); i = next.Add(1) - 1 {
				if _, err := s.fetch(c, targets[i]); err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if len(errs) > 0 {
		t.Errorf("%d of %d requests failed, such as: %v", len(errs), len(targets), errors.Join(errs[:min(len(errs), 3)]...))
	}
}

func targets(first, last int) (list []string) {
	for i := first; i < last; i++ {
		list = append(list, object(i))
	}
	return list
}
