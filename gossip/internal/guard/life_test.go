package guard

import (
	"net/netip"
	"testing"
	"time"
)

// A token proves life once, and only of the peer that got it, lately.
func TestTokens(t *testing.T) {
	begun := time.Unix(1_000_000, 0)
	at := func(s int) time.Time { return begun.Add(time.Duration(s) * time.Second) }
	p1, p2 := netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.0.2:1")
	pair := func() (probe []byte, l1, l2 *Life) {
		l1, l2 = NewLife(10, time.Second), NewLife(10, time.Second)
		first := l1.Probes([]byte{ShortPing, 7, 0, 0, 0, 1, 2, 3}, p2, 0, at(0))
		if l2.Hear(first, p1, at(0)) != nil || l2.Spare(p1, 1, at(0)) {
			t.Error("a probe without a token proves something")
		}
		l1.Hear(l2.Answers([]byte{ShortAck, 7, 0, 0, 0, 9, 9, 9, 9}, p1, at(0)), p2, at(0))
		if !l1.Spare(p2, 1, at(0)) || l1.Spare(p2, 1, at(3)) {
			t.Error("an answer proves nothing, or too long")
		}
		return l1.Probes([]byte{ShortPing, 8, 0, 0, 0, 1, 2, 3}, p2, 0x04030201, at(2)), l1, l2
	}
	probe, l1, l2 := pair()
	if again := l1.Probes([]byte{ShortPing, 9, 0, 0, 0, 1, 2, 3}, p2, 0, at(2)); len(again) != ShortHead+shortTag {
		t.Errorf("a token is sent twice: %x", again)
	}
	if sum := l2.Hear(probe, p1, at(2)); string(sum) != "\x01\x02\x03\x04" || !l2.Spare(p1, 1, at(2)) || l2.Spare(p1, 1, at(5)) {
		t.Errorf("a token proves nothing, or too long; the sum is %x", sum)
	}
	if l2.Hear(probe, p1, at(6)) != nil || l2.Spare(p1, 1, at(6)) {
		t.Error("a probe that came again proves something")
	}
	if l1.Hear([]byte{ShortAck, 7, 0, 0, 0}, p2, at(6)); l1.Spare(p2, 1, at(6)) {
		t.Error("an answer to an earlier probe proves something")
	}
	for name, hear := range map[string]func(l2 *Life){
		"another token": func(l2 *Life) { probe[ShortHead+shortTag]++; l2.Hear(probe, p1, at(2)) },
		"another peer":  func(l2 *Life) { l2.Hear(probe, netip.MustParseAddrPort("10.0.0.3:1"), at(2)) },
		"a late token":  func(l2 *Life) { l2.Hear(probe, p1, at(33)) },
	} {
		probe, _, l2 = pair()
		if hear(l2); len(l2.peers) != 0 {
			t.Errorf("%s proves something", name)
		}
	}
	l2.max = 1
	if l2.proved(p2, 0, at(40)); len(l2.peers) != 1 {
		t.Errorf("%d peers are remembered, want at most %d", len(l2.peers), l2.max)
	}
}
