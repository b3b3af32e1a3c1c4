package removals

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/internal/background"
	"github.com/summarycache/summarycache/gossip/invalidation"
)

var (
	errClosed      = errors.New("closed")
	errUnreachable = errors.New("unreachable")
)

// A cluster is removals that reach each other at once, under virtual time.
type cluster struct {
	t       *testing.T
	members []*member
}

type member struct {
	*Removals
	c       *cluster
	close   func()
	work    *background.Group
	mu      sync.Mutex
	lose    int // so many of the next datagrams
	cut     bool
	recalls int // sent
	told    []string
}

// newCluster starts members that know each other: m0, m1 and so on.
func newCluster(t *testing.T, size int) *cluster {
	c := &cluster{t: t}
	for range size {
		c.start()
	}
	for _, m := range c.members {
		m.meetAll()
	}
	return c
}

func (c *cluster) start() *member {
	m := &member{c: c, work: background.New()}
	m.close = sync.OnceFunc(func() { m.work.Stop(errClosed); m.work.Wait() })
	c.t.Cleanup(m.close)
	m.Removals = New(Config{
		Name: fmt.Sprint("m", len(c.members)), Life: 1, Log: slog.New(slog.DiscardHandler),
		Work: m.work, Closed: errClosed, Send: m.send, Request: m.request,
	})
	m.OnInvalidation(func(t invalidation.Target) { m.told = append(m.told, t.String()) })
	m.Start()
	c.members = append(c.members, m)
	return m
}

func (m *member) meetAll() {
	for _, o := range m.c.members {
		if m != o {
			m.PeerUp(time.Now(), o.cfg.Name, 1)
		}
	}
}

// named returns a member; nil if there is none.
func (c *cluster) named(name string) *member {
	for _, m := range c.members {
		if m.cfg.Name == name {
			return m
		}
	}
	return nil
}

func (m *member) send(to string, b []byte) {
	m.mu.Lock()
	lost := m.cut || m.lose > 0
	m.lose = max(0, m.lose-1)
	m.mu.Unlock()
	if o := m.c.named(to); o != nil && !lost && !o.isCut() {
		m.work.Go(func() { o.Datagram(b) })
	}
}

func (m *member) isCut() bool { m.mu.Lock(); defer m.mu.Unlock(); return m.cut }

func (m *member) setCut(cut bool) { m.mu.Lock(); defer m.mu.Unlock(); m.cut = cut }

func (m *member) request(name string, frame []byte) ([]byte, error) {
	m.mu.Lock()
	m.recalls++
	m.mu.Unlock()
	o := m.c.named(name)
	if m.isCut() || o.isCut() {
		return nil, errUnreachable
	}
	t, n, err := exchange.DecodeFrameHeader([exchange.FrameHeader]byte(frame), 0)
	if t != exchange.FrameRecall || n != len(frame)-exchange.FrameHeader || err != nil {
		m.c.t.Errorf("Request(%v of %d bytes), %v, want a recall of %d", t, n, err, len(frame)-exchange.FrameHeader)
	}
	return o.Answer(frame[exchange.FrameHeader:])
}

// invalidate is Invalidate with a bound, so that a wait for ever is an error.
func (m *member) invalidate(targets ...invalidation.Target) error {
	ctx, cancel := context.WithTimeout(m.c.t.Context(), 10*time.Second)
	defer cancel()
	return m.Invalidate(ctx, targets...)
}

// settle is Settled with a bound.
func (m *member) settle() {
	ctx, cancel := context.WithTimeout(m.c.t.Context(), 10*time.Second)
	defer cancel()
	m.Settled(ctx)
}

func identity(name string) invalidation.Target {
	return invalidation.Target{Kind: invalidation.Identity, Name: name}
}

// ids returns what concerns an identity at m.
func (m *member) ids(identity string) []invalidation.ID {
	m.c.t.Helper()
	ids, ok := m.Concerning(identity)
	if !ok {
		m.c.t.Fatalf("Concerning(%s) is not ok", identity)
	}
	return ids
}

// TestInvalidate: when it returns, all members have applied the targets in their order, although datagrams were lost.
func TestInvalidate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 4)
		c.members[0].lose, c.members[1].lose = 3, 2
		if err := c.members[0].invalidate(identity("a"), identity("b")); err != nil {
			t.Fatal(err)
		}
		for _, m := range c.members {
			if want := []string{"a", "b"}; !slices.Equal(m.told, want) {
				t.Errorf("%s was told of %q, want %q", m.cfg.Name, m.told, want)
			}
			if ids := m.ids("b"); len(ids) != 1 || !m.Applied(ids...) || m.Sum() != c.members[0].Sum() || m.Sum() == 0 {
				t.Errorf("%s: Concerning(b) = %v, Applied() = %v, Sum() = %x", m.cfg.Name, ids, m.Applied(ids...), m.Sum())
			}
			if s := m.Stats(); s.Remembered != 2 {
				t.Errorf("%s: Stats() = %+v, want 2 remembered", m.cfg.Name, s)
			}
		}
	})
}

// TestApplied: one of two that is not applied is enough to say no, in whichever order they are named.
func TestApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2)
		here, other := c.members[0], c.members[1]
		if err := here.invalidate(identity("a")); err != nil {
			t.Fatal(err)
		}
		other.setCut(true)
		if err := other.invalidate(identity("a")); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Invalidate() of one that is cut off = %v", err)
		}
		ids := other.ids("a")
		if len(ids) != 2 {
			t.Fatalf("Concerning() = %v, want one of each member", ids)
		}
		has, lacks := ids[0], ids[1]
		if has.Origin != uint64(exchange.IDOf(here.cfg.Name)) {
			has, lacks = lacks, has
		}
		for name, tc := range map[string]struct {
			ids  []invalidation.ID
			want bool
		}{
			"none":            {nil, true},
			"one applied":     {[]invalidation.ID{has}, true},
			"one not applied": {[]invalidation.ID{lacks}, false},
			"the first only":  {[]invalidation.ID{has, lacks}, false},
			"the second only": {[]invalidation.ID{lacks, has}, false},
			"the same twice":  {[]invalidation.ID{has, has}, true},
		} {
			if got := here.Applied(tc.ids...); got != tc.want {
				t.Errorf("%s: Applied(%v) = %v, want %v", name, tc.ids, got, tc.want)
			}
		}
		if !other.Applied(ids...) {
			t.Errorf("Applied(%v) = false where both are applied", ids)
		}
	})
}

// TestWaits: Invalidate and Settled wait for a listener that is slow. A member that has not applied a target is named.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		free := make(chan struct{})
		for _, m := range c.members[:2] {
			m.OnInvalidation(func(t invalidation.Target) {
				if t.Name == "b" {
					<-free
				}
			})
		}
		err := c.members[0].invalidate(identity("a"), identity("b"))
		var u *UnreachedError
		if !errors.As(err, &u) || !slices.Equal(u.Members, []string{"m0", "m1"}) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Invalidate() = %v, want m0 and m1 unreached after the deadline", err)
		}
		if got, want := err.Error(), "gossip: not yet invalidated at m0, m1: context deadline exceeded"; got != want {
			t.Errorf("Error() = %q, want %q", got, want)
		}
		settled := [3]bool{}
		for i, m := range c.members {
			go func() { m.Settled(t.Context()); settled[i] = true }()
		}
		synctest.Wait()
		if want := [3]bool{2: true}; settled != want {
			t.Errorf("with two slow listeners settled = %v, want %v", settled, want)
		}
		close(free)
		synctest.Wait()
		if want := [3]bool{true, true, true}; settled != want {
			t.Errorf("without slow listeners settled = %v, want %v", settled, want)
		}
		if err := c.members[1].invalidate(identity("c")); err != nil {
			t.Error(err)
		}
	})
}

// TestRefusals: nothing is invalidated if one of the targets is bad, or after the end.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2)
		m := c.members[0]
		for name, tc := range map[string]struct {
			targets []invalidation.Target
			ok      bool
		}{
			"none":                {nil, true},
			"a bad one at first":  {[]invalidation.Target{{}, identity("a")}, false},
			"a bad one at last":   {[]invalidation.Target{identity("a"), {Kind: invalidation.Tag}}, false},
			"everything by name":  {[]invalidation.Target{{Kind: invalidation.Everything, Name: "a"}}, false},
			"a kind that is none": {[]invalidation.Target{{Kind: invalidation.Pattern + 1, Name: "a"}}, false},
		} {
			if err := m.invalidate(tc.targets...); (err == nil) != tc.ok {
				t.Errorf("%s: Invalidate() = %v, want success %v", name, err, tc.ok)
			}
		}
		if ids, ok := m.Concerning("a"); len(ids) > 0 || !ok || m.Sum() != 0 {
			t.Errorf("Concerning() = %v, %v, Sum() = %x, want nothing", ids, ok, m.Sum())
		}
		c.members[1].setCut(true)
		done := make(chan error)
		go func() { done <- m.Invalidate(t.Context(), identity("a")) }()
		synctest.Wait()
		m.close()
		if err := <-done; err != errClosed {
			t.Errorf("Invalidate() under way at the end = %v, want %v", err, errClosed)
		}
		if err := m.invalidate(identity("a")); err != errClosed {
			t.Errorf("Invalidate() after the end = %v, want %v", err, errClosed)
		}
		if got := m.Stats().Remembered; got != 1 {
			t.Errorf("%d remembered, want 1", got)
		}
	})
}

// TestListeners: one that comes late is told to remove everything, unless there was nothing to remove.
func TestListeners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		m := c.members[0]
		var told []string
		listen := func(name string) {
			m.OnInvalidation(func(t invalidation.Target) { told = append(told, name+" "+t.String()) })
		}
		listen("early")
		m.invalidate(identity("a"))
		listen("late")
		m.invalidate(invalidation.Target{Kind: invalidation.Tag, Name: "t", Soft: true})
		if want := []string{"early a", "late everything", "early tag t (soft)", "late tag t (soft)"}; !slices.Equal(told, want) {
			t.Errorf("the listeners were told of %q, want %q", told, want)
		}
		time.Sleep(2 * time.Hour)
		m.With(func(e *invalidation.Engine) { e.Forget(time.Now()) })
		told = nil
		if listen("later"); told != nil {
			t.Errorf("after all is forgotten a listener is told of %q", told)
		}
		if ids, ok := m.Concerning("a"); len(ids) > 0 || !ok {
			t.Errorf("after all is forgotten Concerning() = %v, %v", ids, ok)
		}
		if got, now := m.PeerUp(time.Now(), "m9", 1), time.Now(); got.IsZero() || now.Sub(got) != 2*time.Hour {
			t.Errorf("PeerUp() = %v at %v, want when the last that is forgotten arrived", got, now)
		}
		young := c.start() // and so it has no object of then
		if err := young.Recall("m0"); err != nil {
			t.Fatal(err)
		}
		if young.settle(); young.told != nil || young.Sum() != m.Sum() {
			t.Errorf("a member that starts later is told of %q; Sum() = %x, want %x", young.told, young.Sum(), m.Sum())
		}
	})
}

// TestRecall: who was cut off recalls all that it missed, in several answers, and applies each of them once.
func TestRecall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		here, back := c.members[0], c.start()
		back.setCut(true)
		if err := back.Recall(here.cfg.Name); !errors.Is(err, errUnreachable) {
			t.Errorf("Recall() = %v, want %v", err, errUnreachable)
		}
		const missed = 100
		var targets []invalidation.Target
		for i := range missed {
			targets = append(targets, identity(fmt.Sprint(i, "/", string(make([]byte, 50<<10)))))
		}
		if err := here.invalidate(targets...); err != nil {
			t.Fatal(err)
		}
		back.setCut(false)
		back.recalls = 0
		if err := back.Recall(here.cfg.Name); err != nil {
			t.Fatal(err)
		}
		back.settle()
		if len(back.told) != missed || !slices.Equal(back.told, here.told) || back.Sum() != here.Sum() {
			t.Errorf("told of %d, want the same %d", len(back.told), missed)
		}
		if back.recalls < 5 {
			t.Errorf("%d recalls for 5 MB, want several", back.recalls)
		}
		if err := back.Recall(here.cfg.Name); err != nil || len(back.told) != missed {
			t.Errorf("Recall() of nothing = %v, told of %d", err, len(back.told))
		}
	})
}

// TestPushedBeyond: who learns that a log goes further than what it is sent recalls by itself.
func TestPushedBeyond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2)
		here, other := c.members[0], c.members[1]
		if err := here.invalidate(identity(string(make([]byte, 10<<10)))); err != nil { // it fits no datagram
			t.Fatal(err)
		}
		if len(other.told) != 1 || other.recalls == 0 {
			t.Errorf("told of %d after %d recalls, want 1 after some", len(other.told), other.recalls)
		}
	})
}

// TestReturned: of the members that come back together, one is recalled from.
func TestReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 4)
		m := c.members[0]
		for after, want := range map[time.Duration]int{0: 1, recallInterval - 1: 1, recallInterval: 2} {
			m.recalls, m.recalled = 0, time.Time{}
			start := time.Now()
			for _, o := range c.members[1:3] {
				m.Returned(o.cfg.Name, start)
			}
			m.Returned("m3", start.Add(after))
			if synctest.Wait(); m.recalls != want {
				t.Errorf("three members, the last after %v: %d recalls, want %d", after, m.recalls, want)
			}
		}
	})
}

// TestMalformed: what cannot be read is counted, or its error returned, and changes nothing.
func TestMalformed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2)
		m := c.members[0]
		m.Datagram([]byte{invalidation.PushByte, 1})
		if got := m.Stats().Bad; got != 1 {
			t.Errorf("%d bad datagrams counted, want 1", got)
		}
		if b, err := m.Answer([]byte{1}); err == nil {
			t.Errorf("Answer() of half a recall = %x", b)
		}
		m.cfg.Request = func(string, []byte) ([]byte, error) { return []byte{2}, nil }
		if err := m.Recall("m1"); err == nil {
			t.Error("Recall() with a malformed answer succeeds")
		}
	})
}
