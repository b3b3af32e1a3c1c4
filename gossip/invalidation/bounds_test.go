package invalidation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

var begin = time.Unix(1_700_000_000, 0)

// TestBounds: whichever bound is reached first, the oldest entries are forgotten, and no more than must be.
func TestBounds(t *testing.T) {
	long := strings.Repeat("u", 16<<10-6)
	for name, tc := range map[string]struct {
		kind         Kind
		prefix       string // of the names, which differ in six digits
		issued, kept int
	}{
		"entries":             {Identity, "", maxEntries + 1000, maxEntries},
		"bytes of long names": {Identity, long, 2000, maxBytes / (entryOverhead + 2*(16<<10))},
		"prefixes":            {Prefix, "", maxWide + 100, maxWide},
		"patterns":            {Pattern, "", maxWide + 100, maxWide},
	} {
		t.Run(name, func(t *testing.T) {
			e := New(Config{Origin: 1, Life: 1}, begin)
			target := func(i int) Target { return Target{Kind: tc.kind, Name: fmt.Sprintf("%s%06d", tc.prefix, i)} }
			at := func(i int) time.Time { return begin.Add(time.Duration(i) * time.Millisecond) }
			for i := range tc.issued {
				e.Issue(at(i), target(i))
			}
			first := tc.issued - tc.kept // the oldest that is remembered
			if s, bytes := e.Stats(), tc.kept*target(0).size(); s.Remembered != tc.kept || s.RememberBytes != bytes {
				t.Errorf("after %d entries Stats() = %+v, want %d remembered in %d bytes", tc.issued, s, tc.kept, bytes)
			}
			if got, want := e.Forgotten(), at(first-1); !got.Equal(want) {
				t.Errorf("Forgotten() = %v, want %v", got, want)
			}
			if ids, ok := e.Concerning(target(first - 1).Name); len(ids) > 0 || !ok {
				t.Errorf("Concerning(forgotten) = %v, %v, want none", ids, ok)
			}
			for _, i := range []int{first, tc.issued - 1} {
				want := []ID{{Log{1, 1}, uint64(i + 1)}}
				if ids, ok := e.Concerning(target(i).Name); !slices.Equal(ids, want) || !ok {
					t.Errorf("Concerning(%d) = %v, %v, want %v", i, ids, ok, want)
				}
			}
			e.Forget(at(tc.issued - 1).Add(horizon))
			if s := e.Stats(); s.Remembered != 0 || s.RememberBytes != 0 || !e.Idle() {
				t.Errorf("after an hour Stats() = %+v, Idle() = %v", s, e.Idle())
			}
		})
	}
}

// misses has e learn that entries of a log up to floor are forgotten by others since an age.
func misses(t *testing.T, e *Engine, now time.Time, l Log, floor uint64, age time.Duration) {
	t.Helper()
	m := answer{parts: []part{{Log: l, floor: floor, age: uint64(age / time.Second), first: floor + 1}}}
	if more, err := e.HandleLogs(now, m.append(nil)); more || err != nil {
		t.Fatalf("HandleLogs() = %v, %v", more, err)
	}
}

// TestGapsAreBounded: the last gap of each log counts, of not too many logs, for a minute.
func TestGapsAreBounded(t *testing.T) {
	e := New(Config{Origin: 1, Life: 1}, begin)
	other, again := Log{2, 2}, Log{3, 3}
	misses(t, e, begin, other, 5, 0)
	if e.Idle() {
		t.Error("Idle() = true with a gap")
	}
	const last = maxWide + 10
	for i := range uint64(last) {
		misses(t, e, begin.Add(10*time.Second), again, i+1, 0)
	}
	e.Forget(begin.Add(gapMemory - 1))
	if ids, ok := e.Concerning("x"); !slices.Equal(ids, []ID{{other, 5}, {again, last}}) || !ok {
		t.Errorf("Concerning() = %v, %v, want the last gaps of two logs", ids, ok)
	}
	e.Forget(begin.Add(gapMemory))
	if ids, _ := e.Concerning("x"); !slices.Equal(ids, []ID{{again, last}}) {
		t.Errorf("a minute after the first gap Concerning() = %v, want the second", ids)
	}
	for i := range uint64(last) {
		misses(t, e, begin.Add(gapMemory), Log{4, i + 1}, 1, 0)
	}
	e.Forget(begin.Add(gapMemory))
	if n := len(e.logs.gaps); n != maxWide {
		t.Errorf("%d gaps, want %d", n, maxWide)
	}
	e.Forget(begin.Add(2 * gapMemory))
	if ids, ok := e.Concerning("x"); len(ids) > 0 || !ok || !e.Idle() {
		t.Errorf("after two minutes Concerning() = %v, %v, Idle() = %v", ids, ok, e.Idle())
	}
}

// TestMissedBeforeTheStart: entries of before an engine began matter only if an age, which is in seconds, may be wrong.
func TestMissedBeforeTheStart(t *testing.T) {
	for age, want := range map[time.Duration]int64{0: 1, time.Second: 1, ageSlack: 0, time.Hour: 0} {
		e := New(Config{Origin: 1, Life: 1}, begin)
		if misses(t, e, begin, Log{2, 2}, 5, age); e.Stats().Everything != want {
			t.Errorf("missed %v before the start: everything is invalidated %d times, want %d", age, e.Stats().Everything, want)
		}
	}
}

// TestConcerningEveryKind: of two entries of a log that match an identity, whatever their kinds, the later one is named.
func TestConcerningEveryKind(t *testing.T) {
	const identity = "http://a/b"
	all := []Target{{Kind: Identity, Name: identity}, {Kind: Prefix, Name: "http://a/"}, {Kind: Everything}, {Kind: Tag, Name: "t"}, {Kind: Pattern, Name: "*/b"}}
	for _, one := range all {
		for _, other := range all {
			e := New(Config{Origin: 1, Life: 1}, begin)
			e.Issue(begin, one)
			if e.Idle() {
				t.Errorf("Idle() = true after %v", one)
			}
			e.Issue(begin, other)
			if ids, ok := e.Concerning(identity); !slices.Equal(ids, []ID{{Log{1, 1}, 2}}) || !ok {
				t.Errorf("after %v and %v Concerning() = %v, %v, want the second", one, other, ids, ok)
			}
		}
	}
}

// TestConcerningMany: as many entries as a request names are named, and one more is too many.
func TestConcerningMany(t *testing.T) {
	e := New(Config{Origin: 1, Life: 1}, begin)
	e.PeerUp(begin, "two", 2, 2)
	for i := range uint64(MaxConcerning + 1) {
		if err := e.HandleDatagram(begin, push{Log{2, i + 1}, 1, 1, []Target{{Kind: Tag, Name: "t"}}}.append(nil)); err != nil {
			t.Fatal(err)
		}
		if ids, ok := e.Concerning("x"); len(ids) != int(i+1) || ok != (i < MaxConcerning) {
			t.Errorf("Concerning() of %d logs = %d, %v", i+1, len(ids), ok)
		}
	}
}

// TestForgetLogs: a log is not forgotten before all of it is applied, and then with its part of the sum.
func TestForgetLogs(t *testing.T) {
	e := New(Config{Origin: 1, Life: 1}, begin)
	e.PeerUp(begin, "two", 2, 2)
	id := ID{Log{2, 2}, 1}
	if err := e.HandleDatagram(begin, push{id.Log, 1, 1, []Target{{Kind: Identity, Name: "x"}}}.append(nil)); err != nil {
		t.Fatal(err)
	}
	e.PeerDown(2)
	later := begin.Add(logMemory + time.Hour)
	e.Forget(later)
	if e.Has(id) || e.Settled() || e.Sum() == 0 {
		t.Errorf("before it is applied Has() = %v, Settled() = %v, Sum() = %d", e.Has(id), e.Settled(), e.Sum())
	}
	for _, s := range e.Drain().Apply {
		e.Applied(s)
	}
	if !e.Has(id) || !e.Settled() {
		t.Errorf("when it is applied Has() = %v, Settled() = %v", e.Has(id), e.Settled())
	}
	e.Forget(later)
	if e.Has(id) || !e.Settled() || e.Sum() != 0 {
		t.Errorf("when it is forgotten Has() = %v, Settled() = %v, Sum() = %d", e.Has(id), e.Settled(), e.Sum())
	}
}

// TestManyLogs: as many logs as a member keeps are recalled in answers that fit a frame, each entry once.
func TestManyLogs(t *testing.T) {
	e, from := New(Config{Origin: 1, Life: 1}, begin), New(Config{Origin: 2, Life: 2}, begin)
	from.PeerUp(begin, "three", 3, 3)
	const logs = 2*maxLogs - 1 // and its own
	for i := range uint64(logs) {
		if err := from.HandleDatagram(begin, push{Log{3, i + 1}, 1, 1, []Target{{Kind: Identity, Name: fmt.Sprintf("%020d", i)}}}.append(nil)); err != nil {
			t.Fatal(err)
		}
	}
	applied, answers := 0, 0
	for more := true; more; answers++ {
		b, err := from.HandleRecall(begin, e.Recall())
		if err != nil || len(b) > maxFrame {
			t.Fatalf("HandleRecall() = %d bytes, %v, want at most %d", len(b), err, maxFrame)
		}
		if more, err = e.HandleLogs(begin, b); err != nil {
			t.Fatal(err)
		}
		steps := e.Drain().Apply
		if applied += len(steps); more && len(steps) == 0 {
			t.Fatal("an answer without entries announces more")
		}
	}
	if applied != logs || e.Sum() != from.Sum() || answers < 2 {
		t.Errorf("%d entries in %d answers, want %d in several", applied, answers, logs)
	}
	if b, err := from.HandleRecall(begin, e.Recall()); len(b) != 2 || err != nil {
		t.Errorf("HandleRecall() of one that knows all = %d bytes, %v, want an empty answer", len(b), err)
	}
}

// TestMalformed: a message that is cut short is an error, and changes nothing.
func TestMalformed(t *testing.T) {
	entries := []Target{{Kind: Identity, Name: "x"}}
	e := New(Config{Origin: 1, Life: 1}, begin)
	e.PeerUp(begin, "two", 2, 2)
	n := e.Issue(begin, Target{Kind: Identity, Name: "own"})
	e.Drain()
	for name, tt := range map[string]struct {
		whole  []byte
		handle func([]byte) error
	}{
		"push":    {push{Log{2, 2}, 1, 1, entries}.append(nil), func(b []byte) error { return e.HandleDatagram(begin, b) }},
		"receipt": {receipt{2, 1, n}.append(nil), func(b []byte) error { return e.HandleDatagram(begin, b) }},
		"recall":  {e.Recall(), func(b []byte) error { _, err := e.HandleRecall(begin, b); return err }},
		"answer": {answer{parts: []part{{Log: Log{2, 2}, first: 1, entries: entries}}}.append(nil),
			func(b []byte) error { _, err := e.HandleLogs(begin, b); return err }},
	} {
		sum := e.Sum()
		for i := range tt.whole {
			if err := tt.handle(tt.whole[:i]); err == nil && i != len(push{Log{2, 2}, 1, 1, nil}.append(nil)) {
				t.Errorf("%s: %d of %d bytes are no error", name, i, len(tt.whole))
			}
		}
		if out := e.Drain(); e.Sum() != sum || len(out.Apply) > 0 || len(e.Waiting(n)) != 1 {
			t.Errorf("%s: what is cut short makes the engine apply %v, and wait for %v", name, out.Apply, e.Waiting(n))
		}
	}
}
