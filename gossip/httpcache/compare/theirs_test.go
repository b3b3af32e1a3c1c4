package compare

import (
	"context"
	"net/http"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/groupcache/groupcache-go/v3"
	"github.com/groupcache/groupcache-go/v3/transport"
	"github.com/groupcache/groupcache-go/v3/transport/peer"
)

// theirs is groupcache-go, with a hash function and so many points on the ring that its owners
// have equal shares. With its defaults one owner has 2.8 times the mean.
type theirs struct {
	w         *world
	room      int
	instances []*groupcache.Instance
	groups    []groupcache.Group
	http      []*http.Transport
	served    []*http.Server
}

func newTheirs(w *world, room int) system {
	s := &theirs{w: w, room: room}
	for range nodes {
		s.add()
	}
	s.tell(-1)
	return s
}

func (s *theirs) join() {
	s.add()
	s.tell(-1)
}

func (s *theirs) gone(i int) { s.tell(i) }

func (s *theirs) add() {
	h := s.w.host(len(s.instances))
	client := &http.Transport{DialContext: h.dial, MaxIdleConnsPerHost: 64}
	t := transport.NewHttpTransport(transport.HttpTransportOptions{Client: &http.Client{Transport: client}, Logger: quiet})
	instance := groupcache.New(groupcache.Options{HashFn: xxhash.Sum64, Replicas: 512, Logger: quiet, Transport: t})
	group, err := instance.NewGroup("objects", int64(s.room)*int64(valueBytes+len(keyOf(0))), groupcache.GetterFunc(
		func(ctx context.Context, key string, dest transport.Sink) error {
			value, err := s.w.load(ctx, key)
			if err != nil {
				return err
			}
			return dest.SetBytes(value, time.Time{})
		}))
	if err != nil {
		panic(err)
	}
	s.served = append(s.served, h.serve(t))
	s.instances, s.groups, s.http = append(s.instances, instance), append(s.groups, group), append(s.http, client)
}

// tell gives all instances the list of peers, without peer not.
func (s *theirs) tell(not int) {
	for i, instance := range s.instances {
		var peers []peer.Info
		for j := range s.instances {
			if j != not || j == i {
				peers = append(peers, peer.Info{Address: ip(j) + ":80", IsSelf: i == j})
			}
		}
		if err := instance.SetPeers(context.Background(), peers); err != nil {
			panic(err)
		}
	}
}

func (s *theirs) get(ctx context.Context, i int, key string) error {
	var value []byte
	return s.groups[i].Get(ctx, key, transport.AllocatingByteSliceSink(&value))
}

func (s *theirs) close() {
	for i := range s.instances {
		s.http[i].CloseIdleConnections()
		s.served[i].Close()
	}
}
