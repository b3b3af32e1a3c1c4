package guard

import (
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// TestNewcomersShare: when all places are taken, a source with few of them gets more from one with most;
// a source that has its share does not.
func TestNewcomersShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testScreen(100)
		s.entered = true
		say := func(from byte, i int) {
			s.wait(Claim{Name: fmt.Sprintf("p%d", i), Addr: netip.MustParseAddrPort(fmt.Sprintf("10.0.%d.1:7946", from))}, netip.AddrFrom4([4]byte{10, 0, 0, from}), false)
		}
		for i := range 1000 {
			say(1, i)
		}
		for i := range 1000 {
			say(2, i)
		}
		w := s
		if few, all := w.bySource[netip.MustParseAddr("10.0.0.2")], len(w.waiting); all != 100 || few < 33 || few > 50 {
			t.Errorf("%d of %d places are the second source's", few, all)
		}
		time.Sleep(newcomerProbes*newcomerProbe + time.Millisecond)
		synctest.Wait()
		if len(w.waiting)+len(w.asked)+len(w.bySource)+len(w.listed) != 0 {
			t.Errorf("%d wait for ever", len(w.waiting))
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
		s.wait(said, netip.Addr{}, false)
		s.answered(number()+1, answer("metadata"))
		time.Sleep((newcomerProbes-1)*newcomerProbe + newcomerProbe/2)
		synctest.Wait()
		if probes != newcomerProbes || admitted != 0 || s.confirmed(said) {
			t.Errorf("%d probes, %d let in", probes, admitted)
		}
		for _, other := range [][]byte{answer("other"), answer("metadata")[:SumBytes], nil} {
			s.answered(number(), other)
			s.wait(said, netip.Addr{}, false)
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
