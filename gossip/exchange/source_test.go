package exchange

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/summarycache/summarycache/digest"
)

// behindOf returns an engine that lacks the digest of peer o, which is busy for an hour, and has heard of so many
// other peers that have it: h0, h1 and so on.
func behindOf(t *testing.T, seed uint64, holders int) (e *Engine, now time.Time, o *peer) {
	t.Helper()
	now = time.Unix(1000, 0)
	e = New(Config{Name: "self", Incarnation: 1, Seed: seed}, now)
	names := []string{"o"}
	for i := range holders {
		names = append(names, fmt.Sprint("h", i))
	}
	for _, name := range names {
		e.PeerUp(now, name, 1)
	}
	e.Tick(now)
	for _, f := range e.Drain().Fetches {
		r := Result{Kind: FrameSame, Head: Head{Origin: IDOf(f.Origin), Version: Version{Incarnation: 1}}} // it publishes nothing
		if f.Origin == "o" {
			r = Result{Kind: FrameBusy, RetryAfter: time.Hour}
		}
		e.FetchDone(now, f.Number, r)
	}
	head := Head{Origin: IDOf("o"), Version: Version{Incarnation: 1, Epoch: 1, Sequence: 1}, State: 1, Keys: 1}
	for _, name := range names[1:] {
		e.HandleSync(now, name, []Head{head})
	}
	if o = e.named("o"); len(o.holders) != min(holders, maxHolders) {
		t.Fatalf("%d holders, want %d", len(o.holders), min(holders, maxHolders))
	}
	return e, now, o
}

// TestFailedHolderIsNotAskedAgain: of the peers that have a digest each one is asked once, if it cannot give it,
// until the origin is no longer busy.
func TestFailedHolderIsNotAskedAgain(t *testing.T) {
	for name, r := range map[string]Result{
		"broken off":       {Err: errors.New("connection reset")},
		"malformed":        {Err: ErrMalformed},
		"corrupt":          {Kind: FrameSnapshot, Err: digest.ErrCorrupt},
		"gone":             {Kind: FrameUnknown},
		"nothing newer":    {Kind: FrameSame, Head: Head{Version: Version{Incarnation: 1}}},
		"busy for as long": {Kind: FrameBusy, RetryAfter: 2 * time.Hour},
	} {
		for seed := range uint64(10) {
			e, now, o := behindOf(t, seed, maxHolders)
			var asked []string
			for end := o.busyUntil; now.Before(end) && len(asked) < 100; now = e.Next() {
				e.Tick(now)
				for _, f := range e.Drain().Fetches {
					if f.Origin == "o" {
						asked = append(asked, f.Source)
						e.FetchDone(now, f.Number, r)
					}
				}
			}
			if slices.Sort(asked); strings.Join(asked, " ") != "h0 h1 h2 h3" {
				t.Errorf("%s: asked %q, want each of h0 to h3 once", name, asked)
			}
		}
	}
}

// TestSource: from whom a digest may be fetched in which state, in several tries. "-" is nobody.
func TestSource(t *testing.T) {
	for name, tc := range map[string]struct {
		state    replicaState
		check    bool
		attempts int
		busy     string // these are
		dead     string
		want     string
	}{
		"no replica":                      {state: nothing, want: "h0 h1 h2 o"},
		"no replica, failed once":         {state: nothing, attempts: 1, want: "h0 h1 h2"},
		"no replica, to be checked":       {state: nothing, check: true, want: "h0 h1 h2 o"},
		"trusted":                         {state: trusted, want: "o"},
		"trusted, failed once":            {state: trusted, attempts: 1, want: "h0 h1 h2"},
		"trusted, failed twice":           {state: trusted, attempts: 2, want: "o"},
		"trusted, to be checked":          {state: trusted, check: true, attempts: 1, want: "o"},
		"doubted, failed once":            {state: doubted, attempts: 1, want: "h0 h1 h2"},
		"former, failed once":             {state: former, attempts: 1, want: "h0 h1 h2"},
		"wrong":                           {state: wrong, attempts: 1, want: "o"},
		"origin busy":                     {state: trusted, busy: "o", want: "h0 h1 h2"},
		"a holder busy":                   {state: nothing, busy: "h1", want: "h0 h2 o"},
		"a holder dead":                   {state: nothing, dead: "h1", want: "h0 h2 o"},
		"all holders dead, failed once":   {state: trusted, dead: "h0 h1 h2", attempts: 1, want: "o"},
		"wrong and origin busy":           {state: wrong, busy: "o", want: "-"},
		"to be checked and origin busy":   {state: trusted, check: true, busy: "o", want: "-"},
		"origin busy and all others dead": {state: nothing, busy: "o", dead: "h0 h1 h2", want: "-"},
	} {
		e, now, o := behindOf(t, 1, 3)
		o.state, o.check, o.retry.Row, o.elsewhere, o.busyUntil = tc.state, tc.check, tc.attempts, false, time.Time{}
		for _, busy := range strings.Fields(tc.busy) {
			e.named(busy).busyUntil = now.Add(time.Hour)
		}
		for _, dead := range strings.Fields(tc.dead) {
			e.PeerDown(now, dead)
		}
		got := map[string]bool{}
		for range 100 {
			switch s, wait := e.source(now, o); {
			case s != nil:
				got[s.name] = true
			default:
				if got["-"] = true; wait < time.Hour {
					t.Errorf("%s: source() waits %v for an origin that is busy for an hour", name, wait)
				}
			}
		}
		if got := strings.Join(slices.Sorted(maps.Keys(got)), " "); got != tc.want {
			t.Errorf("%s: source() = %s, want %s", name, got, tc.want)
		}
	}
}

// TestBusyOrigin: while the origin is busy, and at the try after that, a change comes from another peer that has it.
func TestBusyOrigin(t *testing.T) {
	for seed := range uint64(10) {
		e, now, o := behindOf(t, seed, 2)
		o.state, o.busyUntil, o.retry.Row, o.elsewhere, o.check = trusted, time.Time{}, 0, false, false
		for _, want := range []string{"o", "h"} {
			e.Tick(now)
			fetches := e.Drain().Fetches
			if len(fetches) != 1 || fetches[0].Source[:1] != want {
				t.Fatalf("fetches %+v, want one from %s", fetches, want)
			}
			e.FetchDone(now, fetches[0].Number, Result{Kind: FrameBusy, RetryAfter: time.Millisecond})
			now = now.Add(time.Second)
		}
	}
}

// TestHoldersAreBounded: of the many peers that have a version some are known, and none twice.
func TestHoldersAreBounded(t *testing.T) {
	e, now, o := behindOf(t, 1, 20)
	e.HandleSync(now, "h0", []Head{o.announced})
	e.HandleSync(now, "h0", []Head{o.announced})
	names := map[string]bool{}
	for _, h := range o.holders {
		names[h.name] = true
	}
	if len(o.holders) != maxHolders || len(names) != maxHolders {
		t.Errorf("%d holders, %d names, want %d", len(o.holders), len(names), maxHolders)
	}
}

// TestBackOff: the wait after a failed fetch doubles up to half a minute.
func TestBackOff(t *testing.T) {
	e, now, o := behindOf(t, 1, 0)
	o.retry.Row = 0
	for i := range 40 {
		e.backOff(now, o)
		want := min(firstRetry<<min(i, 20), lastRetry)
		if got := o.retry.Until.Sub(now); got < want-want/4 || got > want+want/4 {
			t.Errorf("after %d failures the wait is %v, want about %v", i+1, got, want)
		}
	}
}

// TestFetchesAreBounded: only so many fetches are under way, and those of snapshots are fewer.
func TestFetchesAreBounded(t *testing.T) {
	const fetches = 2
	for name, tc := range map[string]struct {
		state replicaState
		most  int
	}{"changes": {trusted, smallFetches * fetches}, "snapshots": {nothing, fetches}} {
		now := time.Unix(1000, 0)
		e := New(Config{Name: "self", Incarnation: 1, Fetches: fetches}, now)
		for i := range 5 * smallFetches {
			e.PeerUp(now, fmt.Sprint("p", i), 1)
		}
		for _, p := range e.live {
			p.state = tc.state
		}
		underWay := 0
		var last uint64
		for range 3 {
			for end := now.Add(time.Minute); now.Before(end); now = now.Add(time.Second) {
				e.Tick(now)
				for _, f := range e.Drain().Fetches {
					underWay, last = underWay+1, f.Number
				}
			}
			if underWay != tc.most {
				t.Errorf("%s: %d fetches are under way, want %d", name, underWay, tc.most)
			}
			e.FetchDone(now, last, Result{Err: errGone})
			underWay--
		}
	}
}
