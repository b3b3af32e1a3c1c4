package diskstore

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

func TestUnlistsOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMirror()
		s, err := openStore(Options{Dir: t.TempDir(), MaxBytes: 1 << 20, Hooks: m.hooks()})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		start := time.Now()
		for i := range 50 {
			put(t, s, fmt.Sprint(i), nil, bodies.Meta{ListUntil: start.Add(time.Duration(50-i) * time.Minute)})
		}
		put(t, s, "never", nil, bodies.Meta{})
		put(t, s, "over", nil, bodies.Meta{ListUntil: start})
		for i := range 50 {
			if got := s.Stats().Listed; got != 50-i {
				t.Fatalf("after %v %d objects are listed, want %d", time.Since(start), got, 50-i)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		m.check(t, s)
		o, _ := s.Get("7") // a refreshed object comes back
		if _, err := s.Update(o, bodies.Meta{ListUntil: time.Now().Add(2 * time.Hour)}); err != nil {
			t.Fatal(err)
		}
		if m.check(t, s); m.count("7") != 1 {
			t.Error("a refreshed object is not listed")
		}
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if m.check(t, s); s.Stats().Listed != 0 {
			t.Errorf("%d objects are listed past their time", s.Stats().Listed)
		}
		if n := len(s.exp.queue); n != 0 {
			t.Errorf("%d objects wait for their time still", n)
		}
	})
}

// A start restores which objects are listed, and until when.
func TestListed(t *testing.T) {
	dir := t.TempDir()
	until, since := time.Now().Add(time.Hour).Round(0), time.Now().Add(-time.Minute).Truncate(time.Second)
	s := open(t, Options{Dir: dir, MaxBytes: 1 << 20})
	put(t, s, "listed", body(1, 10), bodies.Meta{ListUntil: until, Generated: since})
	put(t, s, "not listed", body(2, 10), bodies.Meta{Generated: since})
	check := func(s *store) {
		t.Helper()
		n := 0
		for listed := range s.Listed() {
			o := listed.(*object)
			if n++; o.Key() != "listed" || !o.ListUntil().Equal(until.Truncate(time.Second)) || !o.Generated().Equal(since) {
				t.Errorf("%s, until %v, generated %v", o.Key(), o.ListUntil(), o.Generated())
			}
		}
		if n != 1 {
			t.Errorf("%d objects are listed, want 1", n)
		}
	}
	check(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, Options{Dir: dir, MaxBytes: 1 << 20})
	check(s)
	s.Delete("listed")
	for o := range s.Listed() {
		t.Errorf("%s is listed", o.Key())
	}
}

// TestClockJumps: an object stays listed for as long as planned, whichever way
// the wall clock jumps meanwhile. An object that was written in the future is not listed after
// a start, since nobody knows how wrong the clock was.
func TestClockJumps(t *testing.T) {
	for _, jump := range []time.Duration{0, -24 * time.Hour, 24 * time.Hour, -30 * time.Minute, 30 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			var ahead time.Duration
			now := func() time.Time { return time.Now().Add(ahead).Round(0) }
			m := newMirror()
			dir := t.TempDir()
			s, err := openStore(Options{Dir: dir, MaxBytes: 1 << 20, Hooks: at(m.hooks(), now)})
			if err != nil {
				t.Fatal(err)
			}
			put(t, s, "before", nil, bodies.Meta{ListUntil: now().Add(time.Hour)})
			o := put(t, s, "renewed", nil, bodies.Meta{ListUntil: now().Add(time.Hour)})
			put(t, s, "far", nil, bodies.Meta{ListUntil: now().Add(1<<63 - 1)})
			ahead = jump
			put(t, s, "after", nil, bodies.Meta{ListUntil: now().Add(time.Hour)})
			if _, err := s.Update(o, bodies.Meta{ListUntil: now().Add(time.Hour)}); err != nil {
				t.Fatal(err)
			}
			for _, wait := range []time.Duration{59 * time.Minute, 2 * time.Minute} {
				time.Sleep(wait)
				synctest.Wait()
				want := 0
				if wait == 59*time.Minute {
					want = 1
				}
				for _, key := range []string{"before", "renewed", "after"} {
					if got := m.count(key); got != want {
						t.Errorf("jump %v: %q listed: %d, want %d, %v later", jump, key, got, want, wait)
					}
				}
			}
			put(t, s, "kept", nil, bodies.Meta{ListUntil: now().Add(time.Hour)})
			s.Close()

			ahead = 0 // a clock that was ahead is put right
			m = newMirror()
			s, err = openStore(Options{Dir: dir, MaxBytes: 1 << 20, Hooks: at(m.hooks(), now)})
			if err != nil {
				t.Fatal(err)
			}
			want := 1
			if jump > 0 || jump == -24*time.Hour { // written in the future; listed until yesterday
				want = 0
			}
			if got := m.count("kept"); got != want {
				t.Errorf("jump %v: listed after a start: %d, want %d", jump, got, want)
			}
			m.check(t, s)
			s.Close()
		})
	}
}

// at returns hooks with a clock.
func at(h bodies.Hooks, now func() time.Time) bodies.Hooks {
	h.Now = now
	return h
}
