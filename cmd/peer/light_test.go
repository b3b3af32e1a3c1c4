//go:build linux

package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/gossip"
)

var lightPeers = flag.Int("light-peers", 16, "processes of TestLightProcesses, of which eight keep digests")

// A crowd is many peers as processes, of which few keep the digests of the others.
type crowd struct {
	*site
	t      *testing.T
	secret string
	peers  []*process
	full   int // the first of the peers
	dead   map[*process]bool
	next   map[*process]int // of the objects that only this peer has, the next to be asked for
	random *rand.Rand
}

// each peer gets so many objects, which are then asked for once each.
const crowdObjects = 400

// TestLightProcesses has eight peers that keep digests, others that ask these, and whatever can happen to the eight. No request
// fails; objects that another peer has are found there, except while those asked are dead and nobody knows it.
func TestLightProcesses(t *testing.T) {
	if !*long {
		t.Skip("takes a minute: -long")
	}
	c := &crowd{t: t, full: 8, dead: map[*process]bool{}, next: map[*process]int{}, random: rand.New(rand.NewPCG(1, 41))}
	c.site = newSite(t, *lightPeers*2*crowdObjects, 2000)
	c.secret = filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(c.secret, []byte("a secret of sixteen bytes or more\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for len(c.peers) < *lightPeers {
		c.start("")
	}
	last := c.peers[len(c.peers)-1]
	joined := eventually(t, 2*time.Minute, "all know each other", func() bool {
		return c.members(last) == *lightPeers-1 && c.members(c.peers[0]) == *lightPeers-1
	})
	t.Logf("%d processes; all know each other %.1f s after the last started", len(c.peers), joined.Seconds())
	for i := range c.peers {
		c.fill(t, c.peers[i].listen, i*crowdObjects, (i+1)*crowdObjects)
	}
	c.settled()
	before, from := last.status(), c.peers[0].status()
	c.ask("at rest", min(1000, *lightPeers*crowdObjects/8), 0.98)
	time.Sleep(20 * time.Second)
	after, to := last.status(), c.peers[0].status()
	rate := func(from, to admin.Status, of func(admin.Exchange) gossip.Traffic) (all, membership float64) {
		seconds := to.Now.Sub(from.Now).Seconds()
		return float64(of(to.Exchange).All()-of(from.Exchange).All()) / seconds, float64(of(to.Exchange).Membership-of(from.Exchange).Membership) / seconds
	}
	in := func(e admin.Exchange) gossip.Traffic { return e.Received }
	out := func(e admin.Exchange) gossip.Traffic { return e.Sent }
	for _, who := range []struct {
		name     string
		from, to admin.Status
	}{{"one that asks", before, after}, {"one that keeps digests", from, to}} {
		received, membership := rate(who.from, who.to, in)
		sent, _ := rate(who.from, who.to, out)
		t.Logf("%s receives %.0f B/s, of which membership %.0f, and sends %.0f", who.name, received, membership, sent)
	}
	t.Logf("digests and index: one that asks %d B, one that keeps them %d B; %d MiB and %d MiB resident", after.Exchange.ReplicaBytes+after.Exchange.IndexBytes,
		to.Exchange.ReplicaBytes+to.Exchange.IndexBytes, resident(t, last.cmd.Process.Pid)>>20, resident(t, c.peers[0].cmd.Process.Pid)>>20)

	for _, p := range c.peers[1:3] {
		c.dead[p] = true // what it holds is not asked for
		p.cmd.Process.Signal(syscall.SIGSTOP)
	}
	c.ask("two that keep digests stand still", 300, 0.9)
	for _, p := range c.peers[1:3] {
		p.cmd.Process.Signal(syscall.SIGCONT)
	}
	c.kill(c.peers[1], c.peers[2])
	c.ask("they are killed", 300, 0.9)
	c.kill(c.peers[3:7]...)
	c.ask("six of eight are killed", 300, 0.5)
	time.Sleep(15 * time.Second)
	c.ask("that is known", 300, 0.95)
	late := c.start("late")
	began := time.Now()
	eventually(t, time.Minute, "a late peer finds what others have", func() bool { return c.askOnce(late, c.holder(late)) })
	t.Logf("a late one found something %.1f s after it was up", time.Since(began).Seconds())
	c.kill(c.peers[0], c.peers[7])
	c.ask("all are killed", 100, 0)
	for range 2 {
		c.start("all")
	}
	began = time.Now()
	eventually(t, 2*time.Minute, "new peers answer for all", func() bool {
		p := c.asker()
		return c.askOnce(p, c.holder(p))
	})
	t.Logf("two new ones answered %.1f s after they were up", time.Since(began).Seconds())
	time.Sleep(10 * time.Second)
	c.ask("and then", 300, 0.95)
}

// start starts a peer that keeps digests as said, or as its number says.
func (c *crowd) start(how string) *process {
	i, keep := len(c.peers), "none"
	if how == "all" || how == "" && i < c.full {
		keep = "all"
	}
	args := []string{"run", "--name", fmt.Sprintf("p%d", i), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--gossip", "127.0.0.1:0",
		"--origin", c.url, "--store", filepath.Join(c.t.TempDir(), fmt.Sprint(i)), "--store-size", "24MiB", "--memory-size", "4MiB",
		"--keep-digests", keep, "--secret-file", c.secret, "--log-level", "error", "--sibling-compare", "0"}
	var join []string
	for _, p := range c.peers[max(0, i-3):i] {
		join = append(join, p.gossip)
	}
	if i > 0 {
		join = append(join, c.peers[0].gossip)
		args = append(args, "--join", strings.Join(join, ","))
	}
	p := spawn(c.t, args...)
	c.peers, c.next[p] = append(c.peers, p), i*crowdObjects
	return p
}

func (c *crowd) kill(peers ...*process) {
	for _, p := range peers {
		c.dead[p] = true
		p.kill()
	}
}

func (c *crowd) members(p *process) (n int) {
	for _, m := range p.status().Members {
		if m.Here() {
			n++
		}
	}
	return n
}

// settled waits until the peers that keep digests have all of them.
func (c *crowd) settled() {
	for _, p := range c.peers[:c.full] {
		eventually(c.t, time.Minute, "digests are current", func() bool {
			for _, m := range p.status().Members {
				if m.Here() && (!m.Current || m.Keys != crowdObjects) {
					return false
				}
			}
			return true
		})
	}
}

// asker returns a random live peer that keeps no digests.
func (c *crowd) asker() *process {
	return c.one(func(i int, p *process) bool { return i >= c.full && i < *lightPeers })
}

// holder returns a random live peer that has objects, but for one.
func (c *crowd) holder(but *process) *process {
	return c.one(func(i int, p *process) bool { return p != but && i < *lightPeers && c.next[p] < (i+1)*crowdObjects })
}

func (c *crowd) one(is func(int, *process) bool) *process {
	var all []*process
	for i, p := range c.peers {
		if is(i, p) && !c.dead[p] {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		c.t.Fatal("there is no such peer")
	}
	return all[c.random.IntN(len(all))]
}

// askOnce requests an object that only holder has from another peer, and reports whether it came from a peer.
func (c *crowd) askOnce(p, holder *process) bool {
	c.t.Helper()
	i := c.next[holder]
	c.next[holder]++
	status, err := c.get(c.t.Context(), p.listen, object(i))
	if err != nil {
		c.t.Errorf("%s: %v", object(i), err)
	}
	return !strings.HasPrefix(status, p.name+";") // which another peer begins that had it
}

// ask makes so many requests, some at a time, and reports which share was found at another peer.
func (c *crowd) ask(when string, n int, least float64) {
	c.t.Helper()
	type pair struct {
		p      *process
		object int
	}
	var all []pair
	for range n {
		p := c.asker()
		h := c.holder(p)
		all = append(all, pair{p, c.next[h]})
		c.next[h]++
	}
	took, found := make([]time.Duration, n), make([]bool, n)
	var wg sync.WaitGroup
	const workers = 4
	for w := range workers {
		wg.Go(func() {
			for i := w; i < n; i += workers {
				began := time.Now()
				status, err := c.get(c.t.Context(), all[i].p.listen, object(all[i].object))
				if err != nil {
					c.t.Errorf("%s: %v", when, err)
				}
				took[i], found[i] = time.Since(began), !strings.HasPrefix(status, all[i].p.name+";")
			}
		})
	}
	wg.Wait()
	got := 0
	for _, f := range found {
		if f {
			got++
		}
	}
	slices.Sort(took)
	c.t.Logf("%-34s %d of %d found at another peer, %v median, %v at 99 %%", when+":", got, n, took[n/2].Round(100*time.Microsecond), took[n*99/100].Round(100*time.Microsecond))
	if float64(got) < least*float64(n) {
		c.t.Errorf("%s: only %d of %d are found", when, got, n)
	}
}
