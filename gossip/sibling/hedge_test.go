package sibling

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A delay can be changed while a sibling uses it.
type delay struct{ atomic.Int64 }

func (d *delay) set(to time.Duration) { d.Store(int64(to)) }

// after answers every request with an object, after a delay.
func after(d *delay, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(time.Duration(d.Load())):
			holds(body)(w, r)
		case <-r.Context().Done():
		}
	}
}

// learn sends n requests, from which the client learns how fast each sibling is.
func (w *world) learn(n int) {
	for i := range n {
		if _, _, err := w.get(w.t.Context(), fmt.Sprint("/", i)); err != nil {
			w.t.Fatal(err)
		}
	}
}

// If a sibling hangs, the client waits little longer than the sibling usually takes, and not until
// the deadline. The request to the sibling is canceled.
func TestHedgeToSibling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		defer w.close()
		var first, second delay
		first.set(2 * time.Millisecond)
		second.set(30 * time.Millisecond)
		w.sibling(after(&first, "first"))
		w.learn(40)
		w.sibling(after(&second, "second"))
		first.set(time.Hour)
		start := time.Now()
		_, body, err := w.get(t.Context(), "/x")
		if took := time.Since(start); err != nil || body != "second" || took > 50*time.Millisecond {
			t.Errorf("%q, %v after %v, want the second's within 50 ms", body, err, took)
		}
		if s := w.client.Stats(); s.Hedges != 1 || s.HedgesWon != 1 || s.Overtaken != 1 || s.Asked != 42 {
			t.Errorf("%+v", s)
		}
		synctest.Wait()
		if n := w.asked(); n != 0 {
			t.Errorf("the origin was asked %d times", n)
		}
	})
}

// A sibling is waited for as long as it usually takes, and no longer than four times what the origin takes, if the
// sibling usually takes less.
func TestHedgeAfter(t *testing.T) {
	const timeout, origin = time.Second, "origin.test"
	for name, tt := range map[string]struct {
		trip, other, fetch time.Duration // how long the sibling, others and the origin take; 0 = unknown
		answers            int           // of the sibling
		toOrigin           bool
		least, most        time.Duration
	}{
		"nothing is known":                    {0, 0, 0, 0, false, timeout / 2, timeout / 2},
		"a fast sibling":                      {time.Millisecond, 0, 0, 100, false, leastHedge, leastHedge},
		"a fast sibling, then the origin":     {time.Millisecond, 0, 0, 100, true, leastOriginHedge, leastOriginHedge},
		"a slow sibling":                      {100 * time.Millisecond, 0, 0, 100, false, 80 * time.Millisecond, 150 * time.Millisecond},
		"a slow one, then the origin":         {100 * time.Millisecond, 0, 0, 100, true, 320 * time.Millisecond, timeout / 2},
		"one as slow as the deadline":         {timeout, 0, 0, 100, false, timeout / 2, timeout / 2},
		"few answers":                         {time.Millisecond, 0, 0, 1, false, timeout / 2, timeout / 2},
		"few answers, and a fast origin":      {time.Millisecond, 0, 25 * time.Millisecond, 1, false, 100 * time.Millisecond, 100 * time.Millisecond},
		"few, and an origin faster than that": {200 * time.Millisecond, 0, 25 * time.Millisecond, 1, false, timeout / 2, timeout / 2},
		"a new one among fast ones":           {0, time.Millisecond, 25 * time.Millisecond, 0, false, 100 * time.Millisecond, 100 * time.Millisecond},
		"a new one among slow ones":           {0, 200 * time.Millisecond, 25 * time.Millisecond, 0, false, timeout / 2, timeout / 2},
		"an origin as slow as the deadline":   {time.Millisecond, 0, timeout, 1, false, timeout / 2, timeout / 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, Config{Timeout: timeout})
			defer w.close()
			c := w.client
			r := c.cfg.Health.of("p")
			for range tt.answers {
				r.trip.add(tt.trip.Seconds())
				r.off.add(0)
				r.answers++
			}
			if tt.other > 0 {
				c.cfg.Health.all.add(tt.other.Seconds())
			}
			if tt.fetch > 0 {
				c.origins.of(origin).trip.add(tt.fetch.Seconds())
			}
			if got := c.hedgeAfter("p", tt.toOrigin, origin); got < tt.least || got > tt.most {
				t.Errorf("%s: hedgeAfter() = %v, want %v to %v", name, got, tt.least, tt.most)
			}
		})
	}
}

// The origin is asked later than another sibling would be, and once.
func TestHedgeToOrigin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		defer w.close()
		var d delay
		d.set(2 * time.Millisecond)
		w.sibling(after(&d, "sibling"))
		w.learn(40)
		for _, tt := range []struct {
			d    time.Duration
			want string
		}{{40 * time.Millisecond, "sibling"}, {time.Hour, "origin"}} {
			d.set(tt.d)
			start := time.Now()
			_, body, err := w.get(t.Context(), "/x")
			if took := time.Since(start); err != nil || body != tt.want || took > 100*time.Millisecond {
				t.Errorf("a sibling that takes %v: %q, %v after %v", tt.d, body, err, took)
			}
		}
		if s := w.client.Stats(); w.asked() != 1 || s.Hedges != 1 {
			t.Errorf("the origin was asked %d times; %+v", w.asked(), s)
		}
	})
}

// If a sibling is late and the origin answers with an error, the client gets the sibling's answer.
func TestHedgeToFailingOrigin(t *testing.T) {
	for name, fail := range map[string]http.HandlerFunc{
		"500":   func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) },
		"reset": func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) },
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, Config{})
			defer w.close()
			w.serve("10.9.9.8:80", fail)
			var d delay
			d.set(300 * time.Millisecond)
			w.sibling(after(&d, "sibling"))
			r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://10.9.9.8:80/x", nil)
			resp, err := w.transport().RoundTrip(r)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			defer resp.Body.Close()
			if body, _ := io.ReadAll(resp.Body); string(body) != "sibling" || w.client.Stats().Hedges != 1 || w.client.Stats().Origins != 1 {
				t.Errorf("%s: %q, %+v", name, body, w.client.Stats())
			}
		})
	}
}

// However many answers are late, hedges stay within their budget, which may be 0.
func TestHedgeBudget(t *testing.T) {
	const questions, late = 2000, 80
	for _, tt := range []struct {
		share       float64
		least, most uint64
	}{{hedgeShare, late - 5, late}, {0.01, 10, questions/100 + savedHedges}, {0, 0, 0}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, Config{})
			w.client.hedge = budget{tt.share, min(tt.share*1000, 1)}
			defer w.close()
			var d delay
			d.set(2 * time.Millisecond)
			w.sibling(after(&d, "a"))
			w.sibling(after(&d, "b"))
			for i := range questions {
				if d.set(2 * time.Millisecond); i%(questions/late) == 0 {
					d.set(60 * time.Millisecond) // of both
				}
				w.get(t.Context(), fmt.Sprint("/", i))
			}
			s := w.client.Stats()
			if s.Hedges < tt.least || s.Hedges > tt.most || (s.HedgesDenied > 0) != (tt.share != hedgeShare) {
				t.Errorf("share %v: %d hedges, %d more wanted; want %d to %d", tt.share, s.Hedges, s.HedgesDenied, tt.least, tt.most)
			}
		})
	}
}

// A sibling that is overtaken again and again counts as one that does not answer.
func TestOvertakenTooOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		w.client.hedge.share = 1
		defer w.close()
		var d delay
		d.set(2 * time.Millisecond)
		w.sibling(after(&d, "sibling"))
		w.learn(40)
		d.set(time.Hour)
		for want := range int64(2) {
			w.learn(2 - int(want))
			if s, n := w.client.Stats(), w.client.cfg.Health.Of("p1").Failures; s.Overtaken != 2 || n != want {
				t.Errorf("%+v, %d failures, want %d", s, n, want)
			}
		}
	})
}
