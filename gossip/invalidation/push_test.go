package invalidation

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// pushes decodes the datagrams of e that are due.
func pushes(t *testing.T, e *Engine, now time.Time) (all []push) {
	t.Helper()
	e.Tick(now)
	for _, d := range e.Drain().Datagrams {
		p, err := decodePush(d.Data)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

// TestPushesAtOnce: a member that lacks too much, or that has never answered, is sent no entry, but how far the log
// goes. Another is sent a few datagrams at once.
func TestPushesAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		heard              bool
		issued             int
		datagrams, entries int
	}{
		"one that never answered":                {false, maxBlind, 1, maxBlind},
		"one that never answered and lacks more": {false, maxBlind + 1, 1, 0},
		"one that lacks many":                    {true, maxBehind, maxPush, maxPush * 8},
		"one that lacks too many":                {true, maxBehind + 1, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := New(Config{Origin: 1, Life: 1}, begin)
			e.PeerUp(begin, "two", 2, 2)
			if tc.heard {
				e.HandleDatagram(begin, receipt{2, 1, 0}.append(nil))
			}
			long := make([]byte, map[bool]int{true: maxDatagram / 9, false: 0}[tc.heard]) // eight fit a datagram
			for i := range tc.issued {
				e.Issue(begin, Target{Kind: Identity, Name: fmt.Sprint(i, string(long))})
			}
			entries, all := 0, pushes(t, e, begin)
			for _, p := range all {
				entries += len(p.entries)
			}
			if len(all) != tc.datagrams || entries != tc.entries || all[0].high != uint64(tc.issued) {
				t.Errorf("%d datagrams with %d of %d entries, want %d with %d", len(all), entries, all[0].high, tc.datagrams, tc.entries)
			}
		})
	}
}

// TestRetries: entries that bring no receipt are sent again, less and less often. A receipt for another life of the
// sender is none.
func TestRetries(t *testing.T) {
	e := New(Config{Origin: 1, Life: 7}, begin)
	e.PeerUp(begin, "two", 2, 2)
	n := e.Issue(begin, Target{Kind: Identity, Name: "x"})
	now, want := begin, firstRetry
	for i := range 20 {
		if all := pushes(t, e, now); len(all) != 1 || len(all[0].entries) != 1 {
			t.Fatalf("try %d: %v, want one push", i, all)
		}
		e.HandleDatagram(now, receipt{2, 6, n}.append(nil))
		next := e.Next()
		if i > 0 {
			want = min(want*3/2, lastRetry)
		}
		if got := next.Sub(now); got != want {
			t.Errorf("after try %d Next() is in %v, want %v", i, got, want)
		}
		now = next
	}
	if got := e.Waiting(n); !slices.Equal(got, []string{"two"}) {
		t.Errorf("Waiting() = %v, want two", got)
	}
	e.HandleDatagram(now, receipt{2, 7, n}.append(nil))
	if got := e.Waiting(n); got != nil || !e.Next().IsZero() {
		t.Errorf("after a receipt Waiting() = %v, Next() = %v", got, e.Next())
	}
}

// TestPushesArePaced: an entry that follows another waits until five milliseconds after that was pushed, so that many
// share a datagram.
func TestPushesArePaced(t *testing.T) {
	e := New(Config{Origin: 1, Life: 1}, begin)
	e.PeerUp(begin, "two", 2, 2)
	e.HandleDatagram(begin, receipt{2, 1, 0}.append(nil))
	e.Issue(begin, Target{Kind: Identity, Name: "first"})
	if got := pushes(t, e, begin); len(got) != 1 {
		t.Fatalf("Tick() pushes the first entry %d times, want 1", len(got))
	}
	e.Issue(begin.Add(time.Millisecond), Target{Kind: Identity, Name: "second"})
	if got := e.Next().Sub(begin); got != pace {
		t.Errorf("Next() is %v after the last push, want %v", got, pace)
	}
	if got := pushes(t, e, begin.Add(pace-1)); len(got) != 0 {
		t.Errorf("Tick() a nanosecond early pushes %v, want nothing", got)
	}
	e.Issue(begin.Add(pace-1), Target{Kind: Identity, Name: "third"})
	if got := pushes(t, e, begin.Add(pace)); len(got) != 1 || len(got[0].entries) != 2 {
		t.Errorf("Tick() after %v pushes %v, want both entries at once", pace, got)
	}
}

// TestReceiptOfSome: a receipt for some entries gives the others as long as they had at first, and they alone are sent again.
func TestReceiptOfSome(t *testing.T) {
	e := New(Config{Origin: 1, Life: 7}, begin)
	e.PeerUp(begin, "two", 2, 2)
	e.HandleDatagram(begin, receipt{2, 7, 0}.append(nil))
	for _, name := range []string{"a", "b", "c"} {
		e.Issue(begin, Target{Kind: Identity, Name: name})
	}
	now := begin
	for range 5 { // it waits longer and longer
		if got := pushes(t, e, now); len(got) != 1 || len(got[0].entries) != 3 {
			t.Fatalf("Tick() pushes %v, want three entries", got)
		}
		now = e.Next()
	}
	now = now.Add(-time.Millisecond)
	e.HandleDatagram(now, receipt{2, 7, 2}.append(nil))
	if got := e.Next().Sub(now); got != firstRetry {
		t.Errorf("Next() is in %v after the receipt, want %v", got, firstRetry)
	}
	if got := pushes(t, e, now); len(got) != 0 {
		t.Errorf("Tick() after the receipt pushes %v, want nothing", got)
	}
	if got := pushes(t, e, now.Add(firstRetry)); len(got) != 1 || got[0].first != 3 || len(got[0].entries) != 1 {
		t.Errorf("Tick() %v later pushes %v, want the third entry", firstRetry, got)
	}
	now = now.Add(firstRetry)
	if e.HandleDatagram(now, receipt{2, 7, 1}.append(nil)); e.Next().Sub(now) <= 0 || len(e.Waiting(3)) != 1 || len(e.Waiting(2)) != 0 {
		t.Errorf("after an older receipt Next() is in %v, and %v are waited for", e.Next().Sub(now), e.Waiting(2))
	}
}

// TestRecallsArePaced: a member that pushes how far its log goes, and no entry, is recalled from once in a while.
func TestRecallsArePaced(t *testing.T) {
	e := New(Config{Origin: 1, Life: 1}, begin)
	e.PeerUp(begin, "two", 2, 2)
	for after, want := range []int{1, 0, 0, 0, 0, 1, 0} { // in tenths of a second
		now := begin.Add(time.Duration(after) * recallRetry / 5)
		e.HandleDatagram(now, push{Log{2, 2}, 100, 101, nil}.append(nil))
		if got := e.Drain().Recalls; len(got) != want {
			t.Errorf("after %v Recalls = %v, want %d", now.Sub(begin), got, want)
		}
	}
}

// TestOwnLogIsOwn: nobody else adds to the log of a member.
func TestOwnLogIsOwn(t *testing.T) {
	e := New(Config{Origin: 1, Life: 1}, begin)
	e.PeerUp(begin, "two", 2, 2)
	sum, entry := e.Sum(), []Target{{Kind: Everything}}
	answered := answer{parts: []part{{Log: e.own.Log, first: 1, entries: entry}, {Log: Log{1, 2}, first: 1, entries: entry}}}
	if _, err := e.HandleLogs(begin, answered.append(nil)); err != nil {
		t.Fatal(err)
	}
	if got := e.Drain().Apply; len(got) != 1 || got[0].at.Log != (Log{1, 2}) || e.own.known != 0 || e.Sum() == sum {
		t.Errorf("Apply = %v, want the entry of a former life", got)
	}
}
