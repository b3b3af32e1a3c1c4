package guard

import (
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// TestNewcomersShare: when all places are taken, a newcomer gets one, and most of those that answer at once have answered before
// another takes theirs. None waits for ever.
func TestNewcomersShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testScreen(100)
		s.entered = true
		say := func(name string) claimed {
			c := Claim{Name: name, Addr: netip.MustParseAddrPort("10.0.0.1:7946")}
			s.wait(c, false)
			return claimedBy(c)
		}
		waits, live := 0, 200
		for i := range live {
			for j := range 20 {
				say(fmt.Sprintf("invented-%d-%d", i, j))
			}
			c := say(fmt.Sprintf("live-%d", i))
			for j := range 10 { // before its answer is here
				say(fmt.Sprintf("more-%d-%d", i, j))
			}
			if s.waiting[c] != nil {
				waits++
			}
		}
		if all := len(s.waiting); all != 100 || waits < live*8/10 {
			t.Errorf("%d places are taken, and %d of %d peers still wait when they answer", all, waits, live)
		}
		time.Sleep(newcomerProbes*newcomerProbe + time.Millisecond)
		synctest.Wait()
		if len(s.waiting)+len(s.asked)+len(s.listed) != 0 {
			t.Errorf("%d wait for ever", len(s.waiting))
		}
	})
}

// TestNewcomerAnswersLate: a newcomer becomes a member although packets to it are lost, or take a second.
// An answer with a wrongly guessed number, or with other metadata, has no effect.
func TestNewcomerAnswersLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testScreen(3)
		s.entered = true
		probes, admitted := 0, 0
		s.cfg.Probe = func([]byte, netip.AddrPort) { probes++ }
		s.cfg.Admit = func([]byte) { admitted++ }
		said := Claim{Name: "p1", Addr: netip.MustParseAddrPort("10.0.0.1:7946"), Meta: []byte("metadata")}
		answer := func(meta string) []byte {
			h := HashOfMeta("p1", []byte(meta))
			return append(make([]byte, SumBytes), h[:]...)
		}
		number := func() (number uint32) {
			for number = range s.asked {
			}
			return number
		}
		s.wait(said, false)
		s.answered(number()+1, answer("metadata"))
		time.Sleep((newcomerProbes-1)*newcomerProbe + newcomerProbe/2)
		synctest.Wait()
		if probes != newcomerProbes || admitted != 0 || s.confirmed(said) {
			t.Errorf("%d probes, %d let in", probes, admitted)
		}
		for _, other := range [][]byte{answer("other"), answer("metadata")[:SumBytes], nil} {
			s.answered(number(), other)
			s.wait(said, false)
		}
		if admitted != 0 || s.confirmed(said) {
			t.Errorf("one that answered with other metadata was let in %d times", admitted)
		}
		last := number()
		s.answered(last, answer("metadata"))
		s.answered(last, answer("metadata"))
		if admitted != 1 || !s.confirmed(said) {
			t.Errorf("one that answered the last probe was let in %d times", admitted)
		}
		said.Meta = []byte("other")
		if s.confirmed(said) {
			t.Error("other metadata than it answered with are believed")
		}
	})
}
