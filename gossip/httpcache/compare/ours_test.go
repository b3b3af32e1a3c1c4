package compare

import (
	"context"
	"net/http"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/http1"
	"github.com/summarycache/summarycache/gossip/httpcache"
	"github.com/summarycache/summarycache/gossip/httpcache/memstore"
)

// bytesOfValue is what a store in memory takes for one of the values, its header and what describes both.
const bytesOfValue = 2500

// ours is httpcache.Member on each node.
type ours struct {
	w      *world
	room   int // objects a node
	nodes  []*gossip.Node
	caches []*httpcache.Member
	http   []interface{ CloseIdleConnections() }
	served []*http.Server
}

func newOurs(w *world, room int) system {
	s := &ours{w: w, room: room}
	for range nodes {
		s.join()
	}
	return s
}

func (s *ours) join() {
	h := s.w.host(len(s.nodes))
	cfg := gossip.Config{Name: "n" + h.IP(), Bind: h.IP() + ":7946", Service: h.IP() + ":80", Objects: s.room, Profile: digest.HTTP, Advanced: gossip.Advanced{Network: h}, Logger: quiet}
	if len(s.nodes) > 0 {
		cfg.Join = []string{s.nodes[0].Addr()}
	}
	node, err := gossip.New(cfg)
	if err != nil {
		panic(err)
	}
	transport := http1.ToSiblings(h.dial)
	cache, err := httpcache.NewMember(httpcache.MemberConfig{Node: node, Open: memstore.Open(int64(s.room) * bytesOfValue), Transport: transport})
	if err != nil {
		panic(err)
	}
	s.served = append(s.served, h.serve(cache))
	if err := node.Join(context.Background()); err != nil {
		panic(err)
	}
	s.nodes, s.caches, s.http = append(s.nodes, node), append(s.caches, cache), append(s.http, transport)
}

func (s *ours) get(ctx context.Context, i int, key string) error {
	_, err := s.caches[i].Get(ctx, key, func(ctx context.Context) ([]byte, time.Time, error) {
		value, err := s.w.load(ctx, key)
		return value, time.Time{}, err
	})
	return err
}

func (s *ours) gone(int) {} // it detects that

func (s *ours) close() {
	for i := range s.nodes {
		s.nodes[i].Close()
		s.served[i].Close()
		s.caches[i].Close()
	}
}
