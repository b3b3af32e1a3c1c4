package node

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/cmd/peer/internal/table"
	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
)

const (
	hangLimit  = 10 * time.Second       // a part hangs if it has work and makes no progress for longer
	statusWait = 500 * time.Millisecond // for all parts of a status
)

// watchParts has the watchdog probe the parts that can hang. The store's writer has a heartbeat
// of its own, see proxyConfig.
func (n *Node) watchParts() {
	n.watchdog.Probe("exchange", n.gossip.Inside().ProbeExchange)
	n.watchdog.Probe("publishing", n.gossip.Inside().ProbePublishing)
	n.watchdog.Probe("digest", func() { n.holdings.Keys().Filter().Len() }) // takes the lock of each shard
	n.watchdog.Probe("store", n.troubles.sampler(n))                        // takes the store's locks
}

// hangReporter returns a function that logs when a part begins to hang, once a minute while it
// hangs, and when it makes progress again.
func (n *Node) hangReporter() func() {
	hung := make(map[string]bool)
	return func() {
		for _, p := range n.watchdog.Parts() {
			if p.Hangs {
				n.log.Error("a part of this peer hangs: no progress though there is work", "part", p.Name, "for",
					time.Duration(p.Stalled)*time.Second)
			} else if hung[p.Name] {
				n.log.Info("a part recovered: it makes progress again", "part", p.Name)
			}
			hung[p.Name] = p.Hangs
		}
	}
}

// Health returns the health of the node; see [admin.Source]. It takes no lock of a part.
func (n *Node) Health() admin.Health {
	h := admin.Health{OK: true, Parts: n.watchdog.Parts(), Degraded: n.troubles.of(n), Missing: []string{}}
	for _, p := range h.Parts {
		h.OK = h.OK && !p.Hangs
	}
	return h
}

// troubles keeps the recent faults of a peer of which no part hangs.
type troubles struct {
	samples []troubleSample // of the last minute, oldest first
	store   atomic.Pointer[troubleList]
}

// A troubleSample has the error counters at one moment.
type troubleSample struct {
	at                   time.Time
	writeErrors, corrupt uint64
}

// sampler returns a function that takes a sample and compares it with the oldest of the last
// minute. Only one goroutine may call it.
func (t *troubles) sampler(n *Node) func() {
	return func() {
		s, now := n.proxy.Store().Stats(), time.Now()
		last := troubleSample{now, s.WriteErrors, s.Corrupt}
		for len(t.samples) > 0 && now.Sub(t.samples[0].at) > time.Minute {
			t.samples = t.samples[1:]
		}
		t.samples = append(t.samples, last)
		first := t.samples[0]
		list := troubleList{}
		if s.RoomLimit != "" {
			list.add("store", false, "it may use %s but has room for %s: %s", table.Bytes(s.MaxBytes),
				table.Bytes(s.RoomBytes), s.RoomLimit)
		}
		if d := last.writeErrors - first.writeErrors; d > 0 {
			list.add("store", false, "the file system refused %d objects in the last minute", d)
		}
		if d := last.corrupt - first.corrupt; d > 0 {
			list.add("store", false, "%d objects were found corrupt in the last minute", d)
		}
		t.store.Store(&list)
	}
}

// A troubleList is a list of faults, each a sentence without its full stop.
type troubleList []admin.Trouble

func (l *troubleList) add(part string, severe bool, format string, args ...any) {
	*l = append(*l, admin.Trouble{Part: part, Severe: severe,
		Text: strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; ")})
}

// of lists the faults. Failing origins are no fault of a forward proxy, since its
// clients choose them.
func (t *troubles) of(n *Node) []admin.Trouble {
	list := troubleList{}
	if known := t.store.Load(); known != nil {
		list = append(list, *known...)
	}
	if c := n.reloads.Load(); c.Error != "" {
		list.add("config", true, "the configuration is not reloaded, since %s: %s", stamp(c.At), c.Error)
	}
	if u := n.upgrades.Load(); u.Error != "" {
		list.add("upgrade", true, "the program is not replaced, since %s: %s", stamp(u.At), u.Error)
	}
	if n.config().Reverse() {
		for _, f := range n.proxy.FailingOrigins() {
			list.add("origin", false, "%s has not answered since %s: %s", f.Host, stamp(f.Since), f.Reason)
		}
	}
	if deadline, lost, _ := n.proxy.SiblingLoad(); lost > bearable {
		list.add("siblings", lost > 0.5,
			"%.0f %% of the requests of the last half minute got no answer in time: fewer are sent, and each may "+
				"take %v",
			100*lost, deadline.Round(time.Millisecond))
	}
	if err := n.gossip.Inside().Alone(); err != nil {
		list.add("cluster", true, "alone: no other peer is found: %v", explain(err, n.config().Name))
	}
	half := n.gossip.Inside().HalfMembers()
	for _, h := range half[:min(len(half), 3)] {
		list = append(list, admin.Trouble{Part: "cluster", Text: h.String()})
	}
	if more := len(half) - 3; more > 0 {
		list = append(list, admin.Trouble{Part: "cluster",
			Text: fmt.Sprintf("%d more peers and this one do not hear each other", more)})
	}
	unlike := n.gossip.Inside().SettingsDiffer()
	for _, u := range unlike[:min(len(unlike), 3)] {
		list = append(list, admin.Trouble{Part: "cluster",
			Text: fmt.Sprintf("%s has other origins or rules than this peer for %s: clients get other answers there",
				u.Member, strings.Join(u.Names, ", "))})
	}
	if late := n.lateness.Now(); late > lateBearable {
		list.add("machine", late > 4*lateBearable, "this process runs %v late: it gets too little of a processor",
			late.Round(time.Millisecond))
	}
	return list
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

const (
	bearable     = 0.1                    // share of requests to siblings that may get no answer before that is a fault
	lateBearable = 125 * time.Millisecond // how late this process may run before that is a fault
)

// A reading gets the state of a part of the node, and keeps the last one.
type reading[T any] struct {
	made sync.Once
	turn chan struct{} // one goroutine calls the part at a time: a part that hangs blocks no more than one
	last atomic.Pointer[T]
}

// get calls ask for the state of the part. If that takes until late ends, it returns the last known
// state, and now is false.
func (r *reading[T]) get(late context.Context, ask func() T) (v T, now bool) {
	r.made.Do(func() { r.turn = make(chan struct{}, 1) })
	select {
	case r.turn <- struct{}{}:
		answer := make(chan T, 1)
		go func() {
			v := ask()
			r.last.Store(&v)
			<-r.turn
			answer <- v
		}()
		select {
		case v = <-answer:
			return v, true
		case <-late.Done():
		}
	case <-late.Done():
	}
	if known := r.last.Load(); known != nil {
		v = *known
	}
	return v, false
}

// readings are the parts of a status, and other calls that may hang.
type readings struct {
	digest   reading[admin.Digest]
	exchange reading[admin.Exchange]
	members  reading[[]admin.Member]
	store    reading[diskstore.Stats]
	cluster  reading[admin.Cluster]
	peers    reading[[]gossip.Member]
}
