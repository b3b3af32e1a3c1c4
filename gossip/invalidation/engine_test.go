package invalidation

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// A cluster is engines on a simulated network that delays and loses datagrams.
type cluster struct {
	t       *testing.T
	r       *rand.Rand
	now     time.Time
	loss    float64
	members []*member
	by      map[string]*member
	events  events
	count   int64 // datagrams
}

type member struct {
	*Engine
	c    *cluster
	name string
	id   uint64
	cfg  Config
	cut  bool // off from all others
	told []Target
}

type event struct {
	at time.Time
	n  int64
	do func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at.Before(e[j].at) || e[i].at.Equal(e[j].at) && e[i].n < e[j].n
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func newCluster(t *testing.T, size int) *cluster {
	c := &cluster{t: t, r: rand.New(rand.NewPCG(1, 1)), now: time.Unix(1_700_000_000, 0), by: make(map[string]*member)}
	for i := range size {
		c.start(Config{Origin: uint64(i + 1), Life: 7})
	}
	return c
}

func (c *cluster) start(cfg Config) *member {
	m := &member{Engine: New(cfg, c.now), c: c, name: fmt.Sprint("m", cfg.Origin), id: cfg.Origin, cfg: cfg}
	c.members = append(c.members, m)
	c.by[m.name] = m
	for _, o := range c.members {
		m.meet(o)
		o.meet(m)
	}
	return m
}

func (m *member) meet(o *member) {
	if m != o {
		m.PeerUp(m.c.now, o.name, o.id, o.cfg.Life)
	}
}

func (c *cluster) after(d time.Duration, do func()) {
	heap.Push(&c.events, event{c.now.Add(d), int64(len(c.events)) + c.count<<20, do})
}

// settle carries out the outputs of m.
func (m *member) settle() {
	c := m.c
	m.Tick(c.now)
	out := m.Drain()
	for _, s := range out.Apply {
		if s.Target.Kind != 0 {
			m.told = append(m.told, s.Target)
		}
		m.Applied(s)
	}
	if len(out.Apply) > 0 {
		m.Tick(c.now)
		more := m.Drain()
		out.Datagrams = append(out.Datagrams, more.Datagrams...)
	}
	for _, d := range out.Datagrams {
		c.count++
		if len(d.Data) > maxDatagram {
			c.t.Fatalf("a datagram of %d bytes", len(d.Data))
		}
		if to := c.by[d.To]; !m.cut && !to.cut && c.r.Float64() >= c.loss {
			c.after(time.Duration(1+c.r.IntN(10))*time.Millisecond, func() {
				if err := to.HandleDatagram(c.now, d.Data); err != nil {
					c.t.Error(err)
				}
				to.settle()
			})
		}
	}
	for _, name := range out.Recalls {
		c.after(2*time.Millisecond, func() { m.recallFrom(c.by[name]) })
	}
	if next := m.Next(); !next.IsZero() {
		c.after(max(0, next.Sub(c.now)), func() {
			if n := m.Next(); !n.IsZero() && !n.After(c.now) {
				m.settle()
			}
		})
	}
}

func (m *member) recallFrom(o *member) {
	for more := true; more; {
		answer, err := o.HandleRecall(m.c.now, m.Recall())
		if err == nil && len(answer) > maxFrame {
			m.c.t.Fatalf("an answer of %d bytes", len(answer))
		}
		if err == nil {
			more, err = m.HandleLogs(m.c.now, answer)
		}
		if err != nil {
			m.c.t.Fatal(err)
		}
	}
	m.settle()
}

// run advances the time by d.
func (c *cluster) run(d time.Duration) {
	end := c.now.Add(d)
	for len(c.events) > 0 && !c.events[0].at.After(end) {
		e := heap.Pop(&c.events).(event)
		c.now = e.at
		e.do()
	}
	c.now = end
}

func (m *member) issue(name string) uint64 {
	n := m.Issue(m.c.now, Target{Kind: Identity, Name: name})
	m.settle()
	return n
}

// TestHundredMembers: all hundred members apply each entry of each member within a second, at a
// cost of one push and one receipt for each member.
func TestHundredMembers(t *testing.T) {
	c := newCluster(t, 100)
	for round := range 20 {
		for i := range 5 {
			m := c.members[(17*round+i)%100]
			n := m.issue(fmt.Sprint(round))
			c.after(time.Second, func() {
				if w := m.Waiting(n); len(w) > 0 {
					t.Errorf("after a second %d have not applied it", len(w))
				}
			})
		}
		c.run(50 * time.Millisecond)
	}
	c.run(2 * time.Second)
	if want := int64(20 * 5 * 99 * 2); c.count != want {
		t.Errorf("%d datagrams, want %d", c.count, want)
	}
	for _, m := range c.members {
		if len(m.told) != 100 || m.Sum() != c.members[0].Sum() || !m.Settled() {
			t.Fatalf("%s was told of %d", m.name, len(m.told))
		}
	}
	if next := c.members[0].Next(); !next.IsZero() && next.After(c.now) {
		t.Errorf("at rest something is due at %v", next)
	}
}

// TestLossAndBursts: a third of the datagrams is lost, and thousands of entries are issued at
// once, some longer than a datagram. All arrive, once and in order.
func TestLossAndBursts(t *testing.T) {
	c := newCluster(t, 5)
	c.loss = 0.3
	want := make(map[string]int)
	long := string(make([]byte, 3000))
	for i := range 3000 {
		m := c.members[i%2]
		name := fmt.Sprint(m.name, "/", i)
		if i%1000 == 500 {
			name += long
		}
		m.issue(name)
		want[m.name]++
		if i%10 == 0 {
			c.run(time.Millisecond)
		}
	}
	c.run(20 * time.Second)
	for _, m := range c.members {
		last := make(map[string]int)
		for _, told := range m.told {
			var from string
			var i int
			fmt.Sscanf(told.Name, "m%1s/%d", &from, &i)
			if i < last[from] {
				t.Fatalf("%s was told of %d after %d", m.name, i, last[from])
			}
			last[from] = i
		}
		if len(m.told) != 3000 || m.Sum() != c.members[0].Sum() {
			t.Errorf("%s was told of %d", m.name, len(m.told))
		}
	}
	// Concerning names the last entry of each log; Has says who has applied it.
	ids, ok := c.members[3].Concerning("m1/2")
	if !ok || len(ids) != 1 || !c.members[4].Has(ids[0]) || c.members[4].Has(ID{ids[0].Log, 1 << 30}) {
		t.Errorf("Concerning = %v, %v", ids, ok)
	}
}

// TestLongLife: the remembered entries turn over a hundred times. One member is away for all of
// it, another for the end.
func TestLongLife(t *testing.T) {
	c := newCluster(t, 0)
	for i := range 4 {
		m := c.start(Config{Origin: uint64(i + 1), Life: 7})
		m.logs.maxEntries, m.logs.maxBytes, m.logs.horizon = 100, 1<<20, time.Minute
	}
	away, lately := c.members[3], c.members[2]
	leave := func(m *member) {
		m.cut = true
		for _, o := range c.members {
			o.PeerDown(m.id)
			m.PeerDown(o.id)
		}
	}
	back := func(m *member) {
		m.cut = false
		for _, o := range c.members {
			if !o.cut {
				m.meet(o)
				o.meet(m)
			}
		}
		m.settle()
		for _, o := range c.members {
			o.settle()
		}
		c.run(time.Second)
	}
	c.members[0].issue("before")
	c.run(time.Second)
	leave(away)
	for i := range 10_000 {
		if i == 9_950 {
			leave(lately)
		}
		c.members[i%2].issue(fmt.Sprint(i % 150))
		if i%4 == 0 {
			c.run(10 * time.Millisecond)
		}
	}
	for _, m := range c.members[:2] {
		if s := m.Stats(); s.Remembered != 100 || s.RememberBytes > 100*(entryOverhead+6) || len(m.logs.named) > 100 {
			t.Errorf("%s remembers %+v, %d names", m.name, s, len(m.logs.named))
		}
	}
	back(lately)
	if s := lately.Stats(); s.Everything != 0 || lately.Sum() != c.members[0].Sum() {
		t.Errorf("after 50: %+v", s)
	}
	told := len(away.told)
	back(away)
	if s := away.Stats(); s.Everything != 2 || away.told[told].Kind != Everything || away.Sum() != c.members[0].Sum() {
		t.Errorf("after 10,000: %+v, told %v", s, away.told[told:])
	}
	// Now it takes no object from a member that missed the same entries.
	if ids, ok := away.Concerning("anything"); !ok || len(ids) != 2 || !c.members[0].Has(ids[0]) || New(Config{Life: 1}, c.now).Has(ids[0]) {
		t.Errorf("Concerning = %v, %v", ids, ok)
	}
	// An hour later no entry is remembered, but the length of each log is.
	c.run(time.Hour)
	for _, m := range c.members {
		m.Forget(c.now)
		if s := m.Stats(); s.Remembered != 0 || s.RememberBytes != 0 || !m.Idle() || m.Sum() != c.members[0].Sum() || m.Sum() == 0 {
			t.Errorf("%s remembers %+v", m.name, s)
		}
	}
	// A member that starts now without objects, or with younger ones, misses nothing; a member
	// with older objects does.
	for name, tc := range map[string]struct {
		since      time.Time
		everything int64
	}{
		"nothing held":     {time.Time{}, 0},
		"held for a while": {c.now.Add(-59 * time.Minute), 0},
		"held for long":    {c.now.Add(-2 * time.Hour), 2},
		"a clock set back": {c.now.Add(time.Hour), 2},
	} {
		m := &member{Engine: New(Config{Origin: 9, Life: 9, Since: tc.since}, c.now), c: c, name: "new", id: 9}
		m.recallFrom(c.members[0])
		if s := m.Stats(); s.Everything != tc.everything || m.Sum() != c.members[0].Sum() {
			t.Errorf("%s: %+v", name, s)
		}
	}
	// A week later the logs of dead members are forgotten.
	for _, m := range c.members[1:] {
		c.members[0].PeerDown(m.id)
	}
	c.run(logMemory + time.Hour)
	c.members[0].Forget(c.now)
	if n := len(c.members[0].logs.by); n != 1 {
		t.Errorf("%d logs of the dead are known", n-1)
	}
}

// TestRestart: a member that starts again at once, with nothing and before anybody has noticed its death, gets what
// was issued before, and what is issued then, of members that it knew well and of those that it never heard of.
func TestRestart(t *testing.T) {
	for _, before := range []int{0, 1, maxBlind, maxBlind + 1, maxBehind + 1} {
		t.Run(fmt.Sprint(before), func(t *testing.T) {
			c := newCluster(t, 3)
			last := uint64(0)
			issue := func(n int) {
				for i := range n {
					last = c.members[0].issue(fmt.Sprint(last, i))
				}
			}
			issue(before)
			c.run(10 * time.Second)
			for range 3 {
				former := c.members[2]
				former.cut, c.members = true, c.members[:2]
				cfg := former.cfg
				cfg.Life++
				m := c.start(cfg)
				for _, o := range c.members {
					o.settle()
				}
				c.run(10 * time.Second)
				issue(1)
				c.run(10 * time.Second)
				if waiting := c.members[0].Waiting(last); len(waiting) > 0 || !m.Has(ID{c.members[0].own.Log, last}) || m.Sum() != c.members[0].Sum() {
					t.Fatalf("life %d has not applied %d entries: Waiting() = %v", cfg.Life, last, waiting)
				}
			}
		})
	}
}

// TestHostile: an insider floods a member with logs, and with entries that match everything. Memory is bounded.
func TestHostile(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	e := New(Config{Origin: 1, Life: 1}, now)
	e.PeerUp(now, "liar", 2, 2)
	e.PeerUp(now, "honest", 3, 3)
	drain := func() {
		for _, s := range e.Drain().Apply {
			e.Applied(s)
		}
	}
	for i := range uint64(2*maxLogs + 10_000) {
		e.HandleDatagram(now, push{Log{2, i + 1}, 1, 1, []Target{{Kind: Everything}}}.append(nil))
		if i%100 == 0 {
			drain()
		}
	}
	drain()
	e.Tick(now)
	if n := len(e.logs.by); n > 2*maxLogs || len(e.logs.prefixes)+len(e.logs.all) > maxWide {
		t.Errorf("%d logs, %d entries that match everything", n, len(e.logs.prefixes)+len(e.logs.all))
	}
	e.Forget(now)
	if n := len(e.logs.by); n > maxLogs+2 {
		t.Errorf("then %d logs", n)
	}
	if ids, ok := e.Concerning("x"); ok {
		t.Errorf("%d entries match an identity, and all would be named", len(ids))
	}
	// A receipt for an entry that was never issued acknowledges nothing.
	n := e.Issue(now, Target{Kind: Identity, Name: "z"})
	e.HandleDatagram(now, receipt{2, 1, n + 1}.append(nil))
	if w := e.Waiting(n); len(w) != 2 {
		t.Errorf("only %v are waited for", w)
	}
}

// TestTagsMatchAll: tags match every identity, and yet a request names only one entry of each
// log, and none once they are forgotten.
func TestTagsMatchAll(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	e := New(Config{Life: 1}, now)
	for i := range 20_000 {
		e.Issue(now, Target{Kind: Tag, Name: fmt.Sprint("t", i), Soft: i%2 == 0})
	}
	if ids, ok := e.Concerning("anything"); !ok || len(ids) != 1 || ids[0].Sequence != 20_000 {
		t.Errorf("Concerning = %v, %v", ids, ok)
	}
	if n := testing.AllocsPerRun(100, func() { e.Concerning("anything") }); n > 2 {
		t.Errorf("%v allocations", n)
	}
	e.Forget(now.Add(2 * time.Hour))
	if ids, ok := e.Concerning("anything"); !ok || len(ids) != 0 || !e.Idle() {
		t.Errorf("after two hours, Concerning = %v, %v, idle %v", ids, ok, e.Idle())
	}
}

// BenchmarkConcerning measures the cost of a miss while 60,000 entries are remembered.
func BenchmarkConcerning(b *testing.B) {
	now := time.Unix(1_700_000_000, 0)
	e := New(Config{Origin: 1, Life: 1}, now)
	for i := range 60_000 {
		e.Issue(now, Target{Kind: Identity, Name: fmt.Sprint("GET http://site.example/object/", i)})
	}
	e.Drain()
	b.ReportAllocs()
	for b.Loop() {
		e.Concerning("GET http://site.example/object/none")
	}
}
