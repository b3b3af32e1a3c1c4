package simulation

import (
	"slices"
	"time"

	"github.com/summarycache/summarycache/gossip/memnet"
)

var never = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// A trouble is a time in which a fault may affect clients' requests.
type trouble struct {
	kind     string
	node     int // whose clients; anyone
	url      int // or the requests for which URL; anyone
	from, to time.Time
}

const anyone = -1

// trouble notes a trouble that begins now. It lasts until the returned function is called, and a
// while longer.
func (w *world) trouble(kind string, node, url int, after time.Duration) (over func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := len(w.troubles)
	w.troubles = append(w.troubles, trouble{kind: kind, node: node, url: url, from: time.Now(), to: never})
	return func() {
		w.mu.Lock()
		w.troubles[i].to = time.Now().Add(after)
		w.mu.Unlock()
	}
}

// troubled returns the troubles that may have affected a request.
func (w *world) troubled(r *result) (list []trouble) {
	w.mu.Lock()
	all := slices.Clone(w.troubles)
	w.mu.Unlock()
	w.origin.mu.Lock()
	spoilt := slices.Clone(w.origin.spoilt)
	w.origin.mu.Unlock()
	for _, of := range [][]trouble{all, spoilt} {
		for _, t := range of {
			if !t.from.After(r.end) && !t.to.Before(r.start) && (t.node == anyone || t.node == r.Node) && (t.url == anyone || t.url == r.URL) {
				list = append(list, t)
			}
		}
	}
	return list
}

// originState is a kind of trouble of the whole origin.
func (w *world) originState() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.troubles {
		if (t.kind == "origin-hang" || t.kind == "origin-error") && !time.Now().After(t.to.Add(-recovery)) {
			return t.kind
		}
	}
	return ""
}

// recovery is how long a trouble may affect clients after its end.
const recovery = 5 * time.Second

// befall injects a fault, and waits for its end.
func (w *world) befall(f fault) {
	p := w.peers[f.Node%len(w.peers)]
	w.log("fault %+v", f)
	switch f.Kind {
	case "loss":
		for _, q := range w.peers { // what the origin and the clients send is not lost
			for _, to := range w.peers {
				w.net.SetLink(q.ip, to.ip, memnet.Conditions{Loss: f.P, Duplicate: f.P / 3, Latency: time.Millisecond, Jitter: 20 * time.Millisecond, Resend: f.P / 2})
			}
		}
		w.wait(f.For)
		w.calmLinks()
	case "partition":
		for _, q := range w.peers {
			if q != p {
				w.net.Partition([]string{p.ip}, []string{q.ip})
			}
		}
		w.wait(f.For)
		w.net.Heal()
	case "origin-unreachable":
		over := w.trouble(f.Kind, p.index, anyone, recovery)
		w.net.Partition([]string{p.ip}, []string{originIP})
		w.wait(f.For)
		w.net.Heal()
		over()
	case "crawl":
		for _, q := range w.peers {
			w.net.SetLink(p.ip, q.ip, memnet.Conditions{Latency: time.Millisecond, Rate: 2000 + f.N*2/5})
		}
		w.wait(f.For)
		w.calmLinks()
	case "reset":
		if f.To == theOrigin {
			defer w.trouble(f.Kind, p.index, anyone, recovery)()
			w.net.ResetAfter(originIP, p.ip, f.N)
			w.wait(f.For)
		} else {
			w.net.ResetAfter(p.ip, w.peers[f.To%len(w.peers)].ip, f.N)
		}
	case "freeze":
		p.changing.enter()
		defer p.changing.leave()
		over := w.trouble(f.Kind, p.index, anyone, recovery)
		p.host.Freeze()
		w.wait(f.For)
		p.host.Thaw()
		over()
	case "kill", "power-cut", "empty", "restart", "saved-digests":
		p.changing.enter()
		defer p.changing.leave()
		over := w.trouble(f.Kind, p.index, anyone, recovery)
		if f.Kind == "restart" || f.Kind == "saved-digests" {
			p.shutdown()
		} else {
			p.kill(f.Kind)
		}
		w.wait(f.For)
		if f.Kind == "saved-digests" {
			p.damageSaved(f)
		}
		p.again()
		over()
	case "origin-down":
		w.origin.changing.enter()
		defer w.origin.changing.leave()
		over := w.trouble(f.Kind, anyone, anyone, recovery)
		w.net.Host(originIP).Kill()
		w.wait(f.For)
		w.origin.listen(originIP)
		over()
	case "origin-hang", "origin-error":
		over := w.trouble(f.Kind, anyone, anyone, recovery)
		w.wait(f.For)
		over()
	case "stubborn":
		over := w.trouble(f.Kind, anyone, f.URL, recovery)
		w.origin.resist(f.URL, &f)
		w.wait(f.For)
		w.origin.resist(f.URL, nil)
		over()
	case "stall", "cut", "origin-reset", "lie", "slow", "late":
		w.origin.spoil(f)
		return // sometimes happens when it has happened
	case "change-one":
		w.origin.change(f.URL)
	case "change":
		for u := range w.s.URLs {
			w.origin.change(w.s.First + u)
		}
	case "rot", "truncate", "remove":
		if !p.damage(f) {
			return
		}
	case "disk-read", "disk-write", "disk-flip", "disk-full", "disk-any":
		p.setDisk(f)
		w.wait(f.For)
		p.setDisk(fault{})
		return // sometimes happens when it has happened
	case "memory":
		p.squeeze(f)
	case "disk-room":
		p.changeRoom(f)
	case "noise":
		p.setNoise(f.P)
		w.wait(f.For)
		p.setNoise(0)
	case "clock":
		p.skew.Store(f.N * int64(time.Millisecond))
		w.wait(f.For)
		p.skew.Store(0)
	case "liar":
		w.liar(f)
	case "purge", "purge-everywhere", "purge-tag", "purge-tag-everywhere":
		w.purge(p, f)
	default:
		panic("no such fault: " + f.Kind)
	}
	w.sometimes("fault " + f.Kind)
}

func (w *world) calmLinks() {
	for _, q := range w.peers {
		for _, to := range w.peers {
			w.net.SetLink(q.ip, to.ip, memnet.Conditions{Latency: 500 * time.Microsecond, Jitter: time.Millisecond})
		}
	}
}

// again starts a peer's node if it has none, as soon as its disk allows it.
func (p *peer) again() {
	for {
		bad := p.diskFault().Kind // which may end before start does
		err := p.start()
		if err == nil {
			return
		}
		if bad == "" {
			p.w.fail("start", nil, "a peer cannot start again: %v", err)
			return
		}
		p.w.sometimes("a peer cannot start")
		pause(time.Second)
	}
}

// heal ends all faults.
func (w *world) heal() {
	w.net.Heal()
	w.calmLinks()
}
