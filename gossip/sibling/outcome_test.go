package sibling

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestOutcomes: what each result of each kind of message changes in the record of a peer, and what it counts as.
func TestOutcomes(t *testing.T) {
	const deadline = 500 * time.Millisecond
	type effects struct {
		counts                    result
		hits, falseHits, failures int64
		odds                      float64 // good less bad
		debt                      float64 // of its digest
		heard, silent             bool    // its round trip is known; it has not answered in time
		away                      bool    // it may not be asked
	}
	for name, tt := range map[string]struct {
		o    outcome
		want effects
	}{
		"a hit":                        {outcome{result: hit}, effects{counts: hit, hits: 1, odds: 1, debt: -hitWorth, heard: true}},
		"a false hit":                  {outcome{result: falseHit}, effects{counts: falseHit, falseHits: 1, odds: -1, debt: 1, heard: true}},
		"not as needed":                {outcome{result: unusable}, effects{counts: unusable, hits: 1, odds: -1, debt: 1, heard: true}},
		"older than the client wants":  {outcome{result: tooOld}, effects{counts: tooOld, hits: 1, odds: -1, heard: true}},
		"late":                         {outcome{result: timedOut}, effects{counts: timedOut, failures: 1, odds: -1, silent: true, away: true}},
		"late, as this process is":     {outcome{result: timedOut, late: true}, effects{counts: excused}},
		"failed":                       {outcome{result: failed}, effects{counts: failed, failures: 1, odds: -1, away: true}},
		"overtaken soon":               {outcome{result: overtaken, took: time.Millisecond}, effects{counts: overtaken, silent: true}},
		"overtaken late":               {outcome{result: overtaken, took: deadline / 2}, effects{counts: timedOut, failures: 1, odds: -1, silent: true, away: true}},
		"not needed any more":          {outcome{result: canceled}, effects{counts: canceled}},
		"a wrong answer":               {outcome{result: accused, kind: other}, effects{counts: accused, away: true}},
		"a body that broke off":        {outcome{result: failed, kind: other}, effects{counts: failed, failures: 1, odds: -1, away: true}},
		"not there, as nobody said":    {outcome{result: falseHit, kind: unlisted}, effects{counts: answered, heard: true}},
		"there, though nobody said so": {outcome{result: hit, kind: unlisted}, effects{counts: hit, hits: 1, odds: 1, debt: -hitWorth, heard: true}},
		"its fetch ended":              {outcome{result: hit, kind: awaited}, effects{counts: shared, hits: 1}},
		"its fetch took too long":      {outcome{result: timedOut, kind: awaited}, effects{counts: canceled}},
		"it had fetched nothing":       {outcome{result: falseHit, kind: awaited}, effects{counts: canceled}},
		"gone while fetching":          {outcome{result: failed, kind: awaited}, effects{counts: failed, failures: 1, odds: -1, away: true}},
		"an answer to a question":      {outcome{result: answered, kind: question}, effects{counts: answered}},
		"no answer to a question":      {outcome{result: silent, kind: question}, effects{counts: silent, silent: true}},
		"refused a question":           {outcome{result: failed, kind: question}, effects{counts: failed, failures: 1, odds: -1, away: true}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var h Health
			tt.o.peer, tt.o.deadline = "p", deadline
			if tt.o.took == 0 {
				tt.o.took = 10 * time.Millisecond
			}
			counts, _ := h.record(tt.o)
			r, _ := h.look("p")
			got := effects{counts, r.hits, r.falseHits, r.failures, r.good - r.bad, r.digest.debt,
				r.answers > 0, r.silence.Row > 0, !r.free(time.Now())}
			if got != tt.want {
				t.Errorf("%s: %+v, want %+v", name, got, tt.want)
			}
		})
	}
}

// TestThreeTimes: a sibling that is overtaken three times in a row counts as one that does not answer; one that does not answer
// three questions in a row is asked no more, for a while. An answer of any kind ends both.
func TestThreeTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h Health
		for i, tt := range []struct {
			o      outcome
			counts result
			quiet  bool
		}{
			{outcome{result: overtaken, deadline: time.Second}, overtaken, false},
			{outcome{result: overtaken, deadline: time.Second}, overtaken, false},
			{outcome{result: answered, kind: question}, answered, false},
			{outcome{result: overtaken, deadline: time.Second}, overtaken, false},
			{outcome{result: overtaken, deadline: time.Second}, overtaken, false},
			{outcome{result: overtaken, deadline: time.Second}, timedOut, true},
			{outcome{result: hit}, hit, false},
			{outcome{result: silent, kind: question}, silent, false},
			{outcome{result: silent, kind: question, took: time.Minute}, silent, false}, // asked before the silence began
			{outcome{result: silent, kind: question}, silent, false},
			{outcome{result: silent, kind: question}, silent, true},
			{outcome{result: answered, kind: question}, answered, false},
		} {
			tt.o.peer = "p"
			counts, _ := h.record(tt.o)
			if r, _ := h.look("p"); counts != tt.counts || r.quiet(time.Now()) != tt.quiet {
				t.Errorf("message %d, %+v: counts as %d, %+v; want %d, quiet %v", i, tt.o, counts, r.silence, tt.counts, tt.quiet)
			}
			time.Sleep(time.Millisecond)
		}
	})
}

// TestMostAreLost: when half of the requests to several siblings are lost, none of them is to blame.
func TestMostAreLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h Health
		var last result
		for i := range 16 {
			last, _ = h.record(outcome{peer: string(rune('a' + i%4)), result: timedOut, took: time.Second})
		}
		if last != excused {
			t.Errorf("the last of sixteen that are all lost counts as %d, want %d", last, excused)
		}
	})
}
